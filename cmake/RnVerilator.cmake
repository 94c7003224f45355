# SystemVerilog blocks as static libraries (Verilator), and the library that all of them need.

find_program(RN_VERILATOR verilator REQUIRED)
execute_process(COMMAND ${RN_VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE RN_VERILATOR_ROOT
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# The assertions of rtl/common/rn_assert.svh are always in; this is for assert statements.
option(RN_RTL_ASSERT "Verilate rnicsim's blocks with --assert (on in Debug builds)" OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
	set(RN_RTL_ASSERT_NOW ON)
else()
	set(RN_RTL_ASSERT_NOW ${RN_RTL_ASSERT})
endif()

set(RN_RTL_INCLUDE_DIRS "${PROJECT_SOURCE_DIR}/rtl/gen" "${PROJECT_SOURCE_DIR}/rtl/common")
set(RN_RTL_PACKAGES "${PROJECT_SOURCE_DIR}/rtl/gen/rn_hw_pkg.sv" "${PROJECT_SOURCE_DIR}/rtl/gen/rn_msg_pkg.sv")
set(RN_RTL_WAIVERS "${PROJECT_SOURCE_DIR}/rtl/lint/waivers.vlt")

# What Verilator comes with as source: tracing (FST), checkpoints, coverage.
set(runtime "${RN_VERILATOR_ROOT}/include")
add_library(rn_verilated STATIC "${runtime}/verilated.cpp" "${runtime}/verilated_threads.cpp"
	"${runtime}/verilated_fst_c.cpp" "${runtime}/verilated_save.cpp" "${runtime}/verilated_cov.cpp")
target_include_directories(rn_verilated SYSTEM PUBLIC "${runtime}" "${runtime}/vltstd")
target_compile_definitions(rn_verilated PUBLIC VM_COVERAGE=1 VM_SC=0 VM_TRACE=1 VM_TRACE_FST=1 VM_TRACE_VCD=0)
target_compile_options(rn_verilated PRIVATE -w)
find_package(ZLIB REQUIRED)
target_link_libraries(rn_verilated PUBLIC ZLIB::ZLIB Threads::Threads)

# rn_verilate(target TOP module PREFIX class SOURCES file... [PARAMS Name=value...] [DEFINES NAME...] [ASSERT]
# [FAULTS] [COVERAGE]): the static library of a Verilated module, with class PREFIX in PREFIX.h.
function(rn_verilate target)
	cmake_parse_arguments(PARSE_ARGV 1 arg "ASSERT;FAULTS;COVERAGE" "TOP;PREFIX" "SOURCES;PARAMS;DEFINES")
	set(dir "${CMAKE_CURRENT_BINARY_DIR}/${target}.verilated")
	set(library "${dir}/${arg_PREFIX}__ALL.a")
	set(options --cc -O3 --x-assign fast --x-initial fast --trace-fst --trace-structs --top-module ${arg_TOP}
		--prefix ${arg_PREFIX} --Mdir "${dir}" -Wno-fatal)
	foreach(folder ${RN_RTL_INCLUDE_DIRS})
		list(APPEND options "-I${folder}")
	endforeach()
	foreach(param ${arg_PARAMS})
		list(APPEND options "-G${param}")
	endforeach()
	foreach(define ${arg_DEFINES})
		list(APPEND options "+define+${define}")
	endforeach()
	if(arg_ASSERT)
		list(APPEND options --assert)
	else()
		list(APPEND options +define+RN_NO_ASSERT)
	endif()
	if(arg_FAULTS)
		list(APPEND options +define+RN_FAULTS)
	endif()
	# The two do not go together; coverage is for benches, which need no checkpoints.
	if(arg_COVERAGE)
		list(APPEND options --coverage)
	else()
		list(APPEND options --savable)
	endif()
	set(flags "-fPIC -w")
	if(RN_SANITIZE)
		# Generated code shifts and subtracts as hardware does; only addresses are of interest.
		string(APPEND flags " -fsanitize=address -fno-omit-frame-pointer")
	endif()
	file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/rtl/common/*.svh")
	add_custom_command(OUTPUT "${library}"
		COMMAND ${CMAKE_COMMAND} -E rm -rf "${dir}"
		COMMAND ${RN_VERILATOR} ${options} ${RN_RTL_WAIVERS} ${RN_RTL_PACKAGES} ${arg_SOURCES}
		COMMAND make -s -C "${dir}" -f ${arg_PREFIX}.mk ${arg_PREFIX}__ALL.a
			"OPT_FAST=-O2 ${flags}" "OPT_SLOW=-O1 ${flags}" "OPT_GLOBAL=-O2 ${flags}" "CXX=${CMAKE_CXX_COMPILER}"
		DEPENDS ${arg_SOURCES} ${RN_RTL_PACKAGES} ${RN_RTL_WAIVERS} ${headers}
		COMMENT "Verilating ${target}" VERBATIM)
	add_custom_target(${target}_verilated DEPENDS "${library}")
	add_library(${target} STATIC IMPORTED GLOBAL)
	add_dependencies(${target} ${target}_verilated)
	file(MAKE_DIRECTORY "${dir}")
	set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${library}")
	target_include_directories(${target} SYSTEM INTERFACE "${dir}")
	target_link_libraries(${target} INTERFACE rn_verilated)
endfunction()
