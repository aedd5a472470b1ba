// How operations that a macro defines refuse their arguments. A static_assert inside a macro costs clang two lines of "expanded
// from macro" per level before it names the caller, so there the check is an attribute of the declaration, whose error stands
// at the caller's line. g++ names the caller first and has no such attribute.
//
// KILN_DETAIL_REFUSE stands between a function's declarator and its body, KILN_DETAIL_CHECK in the body; both take the
// condition that must hold, and the text. The body must stay free of errors when it does not (`if constexpr`).
#pragma once

#if defined(__clang__)
#define KILN_DETAIL_REFUSE(text, ...) __attribute__((diagnose_if(!(__VA_ARGS__), text, "error")))
#define KILN_DETAIL_CHECK(text, ...)
#else
#define KILN_DETAIL_REFUSE(text, ...)
#define KILN_DETAIL_CHECK(text, ...) static_assert((__VA_ARGS__), text);
#endif
