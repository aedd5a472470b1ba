// What the shared library exports; everything else in it is hidden. KILN_API is for users. KILN_INTERNAL_API is for kiln's own
// tests and tools, which look inside: no promise is made about it.
#pragma once

#if defined(_WIN32)
#error "kiln supports ELF platforms only"
#endif
#define KILN_API __attribute__((visibility("default")))
#define KILN_INTERNAL_API __attribute__((visibility("default")))
