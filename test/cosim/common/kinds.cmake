# The Verilated blocks of benches: rnicsim's own, with the hand-made faults in, and more that are only here.

include("${PROJECT_SOURCE_DIR}/rtl/doorbell/sources.cmake")
include("${PROJECT_SOURCE_DIR}/rtl/pte_cache/sources.cmake")

set(RN_COSIM_COMMON "${PROJECT_SOURCE_DIR}/test/cosim/common")

# cosim_add_kinds(target name...): give program @target the kinds rn_kind_<name>, the first one its default.
function(cosim_add_kinds target)
	set(declarations "")
	set(rows "")
	foreach(name ${ARGN})
		string(APPEND declarations "extern const struct rn_rtl_kind rn_kind_${name};\n")
		string(APPEND rows "\t&rn_kind_${name},\n")
		target_sources(${target} PRIVATE $<TARGET_OBJECTS:rn_kind_${name}>)
		target_link_libraries(${target} PRIVATE rn_rtl_${name})
	endforeach()
	set(table "${CMAKE_CURRENT_BINARY_DIR}/${target}_kinds.c")
	file(CONFIGURE OUTPUT "${table}" CONTENT "/* Made by the build. */
#include \"cosim/common/dut.h\"

${declarations}
const struct rn_rtl_kind *const cosim_kinds[] = {
${rows}\tNULL,
};
" @ONLY)
	target_sources(${target} PRIVATE "${table}")
	set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# cosim_geometries(block result): kinds of all geometries that rnicsim has, with faults; an own implementation's first.
function(cosim_geometries block result)
	string(TOUPPER ${block} upper)
	set(names)
	foreach(geometry ${RN_RTL_${upper}_GEOMETRIES})
		list(APPEND names ${block}_${geometry}_faults)
	endforeach()
	set(${result} "${names}" PARENT_SCOPE)
endfunction()
