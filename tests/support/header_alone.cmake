# Compiles a translation unit that includes one public header (twice), with every compiler.
# Variables: HEADER (path below include/), COMPILERS, INCLUDES, WORK (scratch folder).
string(MAKE_C_IDENTIFIER "${HEADER}" stem)
file(WRITE ${WORK}/${stem}.cpp "#include \"${HEADER}\"\n#include \"${HEADER}\"\n")
list(TRANSFORM INCLUDES PREPEND -I)
foreach(compiler IN LISTS COMPILERS)
  execute_process(COMMAND ${compiler} -std=c++20 -Wall -Wextra -Werror -fsyntax-only ${INCLUDES} ${WORK}/${stem}.cpp
                  RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_VARIABLE output)
  if(status)
    message(SEND_ERROR "${HEADER} does not compile alone with ${compiler}:\n${output}")
  endif()
endforeach()
