# SystemVerilog blocks as static libraries (Verilator), and the library that all of them need.

find_program(RN_VERILATOR verilator REQUIRED)
execute_process(COMMAND ${RN_VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE RN_VERILATOR_ROOT
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# rtl and lockstep stop at a failed one; without them they are a little faster.
option(RN_RTL_NO_ASSERT "Verilate rnicsim's blocks without their assertions" OFF)

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
# [COVERAGE]): the static library of a Verilated module, with class PREFIX in PREFIX.h, and in PREFIX_rtl.h
# the width of every port and a digest of the sources. All three are outputs of one step: whoever includes a header is
# compiled again when the module changes. The step depends on every file that Verilator reads.
function(rn_verilate target)
	cmake_parse_arguments(PARSE_ARGV 1 arg "ASSERT;COVERAGE" "TOP;PREFIX" "SOURCES;PARAMS;DEFINES")
	set(dir "${CMAKE_CURRENT_BINARY_DIR}/${target}.verilated")
	set(library "${dir}/${arg_PREFIX}__ALL.a")
	set(header "${dir}/${arg_PREFIX}.h")
	set(about "${dir}/${arg_PREFIX}_rtl.h")
	# What a register holds before its reset is drawn at run time (VerilatedContext::randReset). Memories are in
	# waveforms up to 1024 rows.
	set(options --cc -O3 --x-assign fast --x-initial unique --trace-fst --trace-structs --trace-max-array 1024
		--trace-max-width 4096 --top-module ${arg_TOP} --prefix ${arg_PREFIX} --Mdir "${dir}" -Wno-fatal)
	set(folders ${RN_RTL_INCLUDE_DIRS})
	foreach(source ${arg_SOURCES})
		get_filename_component(folder "${source}" DIRECTORY)
		list(APPEND folders "${folder}")
	endforeach()
	list(REMOVE_DUPLICATES folders)
	foreach(folder ${folders})
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
	set(build "${PROJECT_SOURCE_DIR}/tools/cosim/build_verilated")
	set(describe "${PROJECT_SOURCE_DIR}/tools/cosim/describe_rtl")
	add_custom_command(OUTPUT "${library}" "${header}" "${about}"
		COMMAND ${CMAKE_COMMAND} -E rm -rf "${dir}"
		COMMAND ${RN_VERILATOR} ${options} ${RN_RTL_WAIVERS} ${RN_RTL_PACKAGES} ${arg_SOURCES}
		COMMAND ${RN_PYTHON} "${describe}" "${header}" "${about}" ${arg_SOURCES}
		COMMAND "${build}" "${dir}" ${arg_PREFIX} "${CMAKE_CXX_COMPILER}" "${flags}" ${CMAKE_CXX_COMPILER_LAUNCHER}
		DEPENDS ${arg_SOURCES} ${RN_RTL_PACKAGES} ${RN_RTL_WAIVERS} "${describe}" "${build}"
		DEPFILE "${dir}/${arg_PREFIX}__ver.d"
		COMMENT "Verilating ${target}" VERBATIM)
	add_custom_target(${target}_verilated DEPENDS "${library}" "${header}" "${about}")
	add_library(${target} STATIC IMPORTED GLOBAL)
	add_dependencies(${target} ${target}_verilated)
	file(MAKE_DIRECTORY "${dir}")
	set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${library}")
	target_include_directories(${target} SYSTEM INTERFACE "${dir}")
	target_link_libraries(${target} INTERFACE rn_verilated)
endfunction()
