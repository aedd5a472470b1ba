// Everything a user needs. The headers stand in dependency order, leaves first: a compiler's list of "In file included
// from" lines is then as short as can be, and the user's own line comes early in every error message.
#pragma once
#include <kiln/dtype/dtype.hpp>
#include <kiln/graph/graph.hpp>
#include <kiln/dsl/value.hpp>
#include <kiln/dsl/any.hpp>
#include <kiln/dsl/math.hpp>
#include <kiln/dsl/shape.hpp>
#include <kiln/dsl/memory.hpp>
#include <kiln/dsl/local.hpp>
#include <kiln/dsl/control.hpp>
#include <kiln/dsl/context.hpp>
#include <kiln/dsl/allocator.hpp>
#include <kiln/dsl/pool.hpp>
#include <kiln/validate/validate.hpp>
#include <kiln/runtime/error.hpp>
#include <kiln/runtime/grid.hpp>
#include <kiln/runtime/device.hpp>
#include <kiln/runtime/stream.hpp>
#include <kiln/runtime/array_view.hpp>
#include <kiln/runtime/pinned.hpp>
#include <kiln/runtime/buffer.hpp>
#include <kiln/runtime/launch.hpp>
#include <kiln/bind.hpp>
#include <kiln/kernel.hpp>
#include <kiln/target/target.hpp>
