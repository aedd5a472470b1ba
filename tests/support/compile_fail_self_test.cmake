# compile_fail.cmake must accept the good file below and refuse each of its spoiled copies, for the reason given.
# Variables: SCRIPT (compile_fail.cmake), COMPILERS, WORK (scratch folder).
cmake_minimum_required(VERSION 3.25)

set(good [=[
// expect-error: as[i0 % 4] is read; wait first
template <int N> struct checked { static_assert(N > 3, "as[i0 % 4] is read; wait first"); };
#ifdef TWIN
checked<4> value;
#else
checked<2> value; // expect-line
#endif
]=])

function(check name expected content)
  file(WRITE ${WORK}/${name}.cpp "${content}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DFILE=${WORK}/${name}.cpp "-DCOMPILERS=${COMPILERS}" -DINCLUDES=${WORK} -DWORK=${WORK}/work -P ${SCRIPT}
                  RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_VARIABLE output)
  if(expected STREQUAL "good")
    if(status)
      message(SEND_ERROR "${name}: refused: ${output}")
    endif()
    return()
  endif()
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${expected}" at)
  if(NOT status OR at LESS 0)
    message(SEND_ERROR "${name}: expected `${expected}`, got status ${status}: ${output}")
  endif()
endfunction()

function(check_spoiled name expected from to)
  string(REPLACE "${from}" "${to}" content "${good}")
  if(content STREQUAL good)
    message(FATAL_ERROR "${name}: `${from}` does not occur")
  endif()
  check(${name} "${expected}" "${content}")
endfunction()

check(good good "${good}")
check_spoiled(accepted "accepts the wrong program" "checked<2>" "checked<5>")
check_spoiled(twin "the good twin does not compile" "checked<4>" "checked<1>")
string(REPLACE "wait first" "wait, line 6" with_line "${good}")
string(REPLACE "expect-error: as[i0 % 4] is read; wait, line 6" "expect-error: as[i0 % 4] is read; wait, line {line}" with_line "${with_line}")
check(line good "${with_line}")
string(REPLACE "{line}" "{line-2}" with_line "${with_line}")
check(line_offset "prints the expected text 0 times" "${with_line}")
check_spoiled(other_text "prints the expected text 0 times" "error: as[i0" "error: bs[i0")
check_spoiled(twice "prints the expected text 2 times" "checked<2> value;" "checked<2> value; checked<3> other;")
check_spoiled(no_expectation "needs at least one" "// expect-error:" "// note:")
check_spoiled(no_line "needs at least one" "// expect-line" "")
check_spoiled(no_twin "needs a good twin" "#ifdef TWIN" "#if defined(TWIN)")
check_spoiled(case_without_line "needs at least one" "// expect-error:" "// case: first\n// expect-line\n// case: second\n// expect-error:")
check_spoiled(same_case "two cases called first" "// expect-error:" "// case: first\n// case: first\n// expect-error:")
check_spoiled(two_lines "more than one expect-line" "#endif" "int unrelated; // expect-line\n#endif")
check_spoiled(other_line "is not among the first six lines" " // expect-line" "\nint unrelated; // expect-line")

# Several cases share what the file includes, which comes in once and leaves the places of messages alone.
file(WRITE ${WORK}/checked.hpp "#pragma once
template <int N> constexpr void check() { static_assert(N > 3, \"N is too small\"); }
")
set(good "// Three cases.
#include <checked.hpp>
")
foreach(case one two three)
  string(APPEND good "
// case: ${case}
// expect-error: N is too small
#if defined(TWIN) || defined(CASE_${case})
void ${case}() {
#ifdef CASE_${case}
  check<2>(); // expect-line
#else
  check<4>();
#endif
}
#endif
")
endforeach()
check(shared_include good "${good}")
check_spoiled(shared_include_accepted "accepts the wrong program" "check<2>" "check<5>")
check_spoiled(shared_include_broken "what it includes does not compile" "<checked.hpp>" "<absent.hpp>")
check_spoiled(shared_include_other_line "is not among the first six lines" " // expect-line" "\n  // expect-line")
