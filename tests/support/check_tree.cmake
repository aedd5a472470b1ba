# The rules of the tree, checked on the text of the files below ROOT:
#   - a layer includes only layers with a smaller number (the table below); runtime reaches the compiler through
#     src/runtime/compiler_interface.hpp alone, which jit/ implements and therefore may include
#   - LLVM and lld headers are included under jit/ only, driver and toolkit headers nowhere in include/, src/ and jit/
#   - every header and source is named in its folder's list (include/, src/, jit/ CMakeLists.txt)
#   - every test is named in its folder's CMakeLists.txt, so that it runs
#   - no hand-written file grows over 1000 lines (generated tables say so in their first line)
cmake_minimum_required(VERSION 3.25)

# path prefix -> layer. The longest prefix wins.
set(layers
  "include/kiln/export.hpp=0" "include/kiln/version.hpp=0" "src/version.cpp=1"
  "include/kiln/meta/=1" "include/kiln/dtype/=1" "include/kiln/layout/=1" "include/kiln/target/=1" "include/kiln/io/=1"
  "src/dtype/=1" "src/layout/=1" "src/target/=1" "src/io/=1"
  "include/kiln/graph/=2" "src/graph/=2" "src/cache/=2"
  "include/kiln/dsl/=3" "src/dsl/=3"
  "include/kiln/validate/=4" "src/validate/=4" "include/kiln/diagnostic/=4" "src/diagnostic/=4"
  "include/kiln/interpreter/=5" "src/interpreter/=5"
  "jit/=6"
  "include/kiln/runtime/=7" "src/runtime/=7"
  "include/kiln/=8" "src/=8")
# What the runtime (7) may not see although its number is smaller: it receives bytes and a launch signature.
set(hidden_from_runtime 3 4 5 6)
set(narrow_interface src/runtime/compiler_interface.hpp)

function(layer_of path result)
  set(best "")
  set(best_length 0)
  foreach(entry IN LISTS layers)
    string(REGEX MATCH "^(.*)=([0-9]+)$" _ "${entry}")
    set(layer ${CMAKE_MATCH_2})
    set(prefix ${CMAKE_MATCH_1})
    string(FIND "${path}" "${prefix}" at)
    string(LENGTH "${prefix}" length)
    if(at EQUAL 0 AND length GREATER best_length)
      set(best ${layer})
      set(best_length ${length})
    endif()
  endforeach()
  set(${result} "${best}" PARENT_SCOPE)
endfunction()

set(faults "")
file(GLOB_RECURSE files RELATIVE ${ROOT}
  ${ROOT}/include/*.hpp ${ROOT}/include/*.def ${ROOT}/src/*.hpp ${ROOT}/src/*.cpp ${ROOT}/src/*.def ${ROOT}/jit/*.hpp
  ${ROOT}/jit/*.cpp ${ROOT}/jit/*.def ${ROOT}/tools/*.?pp ${ROOT}/examples/*.?pp ${ROOT}/tests/*.?pp ${ROOT}/bench/*.?pp)
list(SORT files)

foreach(list_file include src jit)
  set(listed_${list_file} "")
  if(EXISTS ${ROOT}/${list_file}/CMakeLists.txt)
    file(STRINGS ${ROOT}/${list_file}/CMakeLists.txt lines)
    foreach(line IN LISTS lines)
      string(STRIP "${line}" line)
      list(APPEND listed_${list_file} "${line}")
    endforeach()
  endif()
endforeach()

foreach(file IN LISTS files)
  layer_of(${file} layer)
  string(REGEX MATCH "^[^/]+" top ${file})
  cmake_path(GET file PARENT_PATH folder)

  file(STRINGS ${ROOT}/${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]*)[>\"].*$" "\\1" include "${include}")
    if(include MATCHES "^(llvm|llvm-c|lld|clang)/" AND NOT top STREQUAL "jit")
      list(APPEND faults "${file}: includes ${include}; LLVM headers are for jit/ only")
    endif()
    if(include MATCHES "^(cuda|cuda_runtime|hip/|nvrtc|rocm)" AND top MATCHES "^(include|src|jit)$")
      list(APPEND faults "${file}: includes ${include}; drivers are reached through our own declarations and dlopen")
    endif()

    # Where the include leads, if it stays in this tree.
    set(target "")
    if(include MATCHES "^kiln/")
      set(target include/${include})
    elseif(include MATCHES "^(src|jit)/")
      set(target ${include})
    elseif(EXISTS ${ROOT}/${folder}/${include})
      cmake_path(SET target NORMALIZE ${folder}/${include})
    endif()
    if(NOT target OR layer STREQUAL "")
      continue()
    endif()
    layer_of(${target} target_layer)
    if(target_layer STREQUAL "" OR target_layer EQUAL layer)
      continue()
    endif()
    if(target STREQUAL narrow_interface AND top STREQUAL "jit")
      continue()
    endif()
    if(target_layer GREATER layer)
      list(APPEND faults "${file} (layer ${layer}): includes ${target} (layer ${target_layer})")
    elseif(layer EQUAL 7 AND target_layer IN_LIST hidden_from_runtime)
      list(APPEND faults "${file}: the runtime includes ${target} (layer ${target_layer}); it reaches the compiler through ${narrow_interface}")
    endif()
  endforeach()

  if(top STREQUAL "include" OR (top MATCHES "^(src|jit)$" AND file MATCHES "\\.cpp$"))
    string(REGEX REPLACE "^[^/]+/(.*)$" "\\1" below ${file})
    if(NOT below IN_LIST listed_${top})
      list(APPEND faults "${file}: not listed in ${top}/CMakeLists.txt")
    endif()
  endif()

  if(file MATCHES "^(tests/[a-z_]+)/(.*\\.cpp)$" AND NOT CMAKE_MATCH_1 STREQUAL "tests/support")
    set(list ${CMAKE_MATCH_1}/CMakeLists.txt)
    set(below ${CMAKE_MATCH_2})
    if(EXISTS ${ROOT}/${folder}/CMakeLists.txt) # a project of its own
      set(list ${folder}/CMakeLists.txt)
      cmake_path(GET file FILENAME below)
    endif()
    set(text "")
    if(EXISTS ${ROOT}/${list})
      file(READ ${ROOT}/${list} text)
    endif()
    string(FIND "${text}" "${below}" at)
    if(at LESS 0)
      list(APPEND faults "${file}: not named in ${list}, so it never runs")
    endif()
  endif()

  file(STRINGS ${ROOT}/${file} first LIMIT_COUNT 1)
  file(READ ${ROOT}/${file} content)
  string(REGEX MATCHALL "\n" newlines "${content}")
  list(LENGTH newlines count)
  if(count GREATER 1000 AND NOT first MATCHES "[Gg]enerated")
    list(APPEND faults "${file}: ${count} lines; split it by subject")
  endif()
endforeach()

if(faults)
  list(JOIN faults "\n  " text)
  message(FATAL_ERROR "the tree breaks its rules:\n  ${text}")
endif()
