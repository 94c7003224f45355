# Language levels, output folders and the switches that the presets set.

option(RN_TESTS "Build the tests" ON)
option(RN_WERROR "Treat warnings as errors" OFF)
option(RN_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
option(RN_SANITIZE_THREADS "Build with the thread sanitizer" OFF)
option(RN_LTO "Optimise the simulator across files, in release builds" ON)
option(RN_COVERAGE "Build with gcov instrumentation" OFF)

if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
	set(CMAKE_C_FLAGS_RELEASE "-O2 -g1" CACHE STRING "" FORCE)
	set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1" CACHE STRING "" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The layers below the verbs library are linked into a shared object too.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

add_library(rn_warnings INTERFACE)
target_compile_options(rn_warnings INTERFACE
	-Wall -Wextra -Wpedantic -Wshadow -Wwrite-strings -Wformat=2 -Wvla -Wundef
	$<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
	$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
	$<$<BOOL:${RN_WERROR}>:-Werror>)

if(RN_SANITIZE)
	add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
		-fno-omit-frame-pointer)
	add_link_options(-fsanitize=address,undefined)
endif()
if(RN_SANITIZE_THREADS)
	if(RN_SANITIZE)
		message(FATAL_ERROR "RN_SANITIZE and RN_SANITIZE_THREADS do not go together")
	endif()
	add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
	add_link_options(-fsanitize=thread)
endif()
if(RN_COVERAGE)
	add_compile_options(--coverage)
	add_link_options(--coverage)
endif()

# A function of the same file may be inlined although it is global: nothing here is meant to be interposed.
add_compile_options(-fno-semantic-interposition)

# The model's objects hold both machine code, which tests and shared objects link, and GCC's own form, of which
# rn_optimise() makes a faster program.
set(RN_LTO_COMPILE "")
if(RN_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
		AND NOT RN_SANITIZE AND NOT RN_SANITIZE_THREADS AND NOT RN_COVERAGE)
	set(RN_LTO_COMPILE -flto=auto -ffat-lto-objects)
endif()
