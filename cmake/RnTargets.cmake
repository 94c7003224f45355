# How the project's targets are made: one static library per layer, one Check executable per test file.

# rn_layer(name SOURCES file... [LIBS target...]): the static library of a layer. Headers are included by
# layer ("sim/fifo.h"), so every layer exports model/ and host-shim/.
function(rn_layer name)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
	add_library(${name} STATIC ${arg_SOURCES})
	target_include_directories(${name} PUBLIC
		"${PROJECT_SOURCE_DIR}/model" "${PROJECT_SOURCE_DIR}/host-shim")
	target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE rn_warnings)
	target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:${RN_LTO_COMPILE}>)
	if(RN_LTO_COMPILE)
		target_link_options(${name} INTERFACE
			$<$<NOT:$<BOOL:$<TARGET_PROPERTY:RN_OPTIMISED>>>:-fno-lto>)
	endif()
endfunction()

# rn_optimise(target): link the program with optimisation across files (RN_LTO).
function(rn_optimise target)
	if(RN_LTO_COMPILE)
		set_target_properties(${target} PROPERTIES RN_OPTIMISED ON)
		target_link_options(${target} PRIVATE -O2 -flto=auto)
	endif()
endfunction()

# rn_check_test(name SOURCES file... [LIBS target...] [LABELS label...] [TIMEOUT seconds]): a test executable
# in <build>/bin/test, run by ctest under the given name.
function(rn_check_test name)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBS;LABELS")
	if(NOT arg_TIMEOUT)
		set(arg_TIMEOUT 120)
	endif()
	add_executable(${name} ${arg_SOURCES})
	set_target_properties(${name} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/test")
	target_compile_definitions(${name} PRIVATE _GNU_SOURCE
		RN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RN_BINARY_DIR="${CMAKE_BINARY_DIR}")
	target_include_directories(${name} PRIVATE
		"${PROJECT_SOURCE_DIR}/model" "${PROJECT_SOURCE_DIR}/host-shim" "${PROJECT_SOURCE_DIR}/test")
	target_link_libraries(${name} PRIVATE ${arg_LIBS} PkgConfig::CHECK rn_warnings)
	add_test(NAME ${name} COMMAND ${name})
	# Check gives each test 4 s by default, which a sanitizer build on a busy machine exceeds.
	set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
		ENVIRONMENT "CK_DEFAULT_TIMEOUT=${arg_TIMEOUT}")
endfunction()

# rn_verbs_program(name source...): a test's verbs program in <build>/bin/test, linked against the
# distribution's library as any user's would be, with the common part test/system/programs/peer.c.
function(rn_verbs_program name)
	find_library(RN_SYSTEM_IBVERBS NAMES libibverbs.so REQUIRED)
	add_executable(${name} ${ARGN} "${PROJECT_SOURCE_DIR}/test/system/programs/peer.c")
	set_target_properties(${name} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/test")
	target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
	target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/test/system/programs")
	target_link_libraries(${name} PRIVATE rn_warnings "${RN_SYSTEM_IBVERBS}")
endfunction()

# rn_script_test(name COMMAND ... [LABELS label...] [TIMEOUT seconds] [PROCESSORS n]): a test that is a
# script. Exit status 77 means skipped.
function(rn_script_test name)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PROCESSORS" "COMMAND;LABELS")
	if(NOT arg_TIMEOUT)
		set(arg_TIMEOUT 120)
	endif()
	if(NOT arg_PROCESSORS)
		set(arg_PROCESSORS 1)
	endif()
	add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
	set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
		SKIP_RETURN_CODE 77 PROCESSORS ${arg_PROCESSORS}
		ENVIRONMENT "RN_BUILD_DIR=${CMAKE_BINARY_DIR};RN_SANITIZED=$<BOOL:${RN_SANITIZE}>;PYTHONDONTWRITEBYTECODE=1")
endfunction()

# rn_add_test_folders(dir): the sub-folders of dir that have a CMakeLists.txt, or theirs if they have none.
function(rn_add_test_folders dir)
	file(GLOB children CONFIGURE_DEPENDS LIST_DIRECTORIES true "${dir}/*")
	foreach(child ${children})
		if(EXISTS "${child}/CMakeLists.txt")
			add_subdirectory("${child}")
		elseif(IS_DIRECTORY "${child}")
			rn_add_test_folders("${child}")
		endif()
	endforeach()
endfunction()
