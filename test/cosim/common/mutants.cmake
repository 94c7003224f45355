# Netlist mutants (tools/cosim/mutate).

set(RN_MUTANTS 50 CACHE STRING "Random netlist mutants of an RTL block (targets cosim_<block>_mutants)")
set(RN_MUTANT_SEED 1 CACHE STRING "Seed of their choice")
find_program(RN_YOSYS yosys)

# rn_mutants(target TOP module PREFIX class SOURCES file... PARAMS Name=value...): the static library of the Verilated
# netlist with mutants; their list is <target>.txt in the current binary folder.
function(rn_mutants target)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "TOP;PREFIX" "SOURCES;PARAMS")
	set(netlist "${CMAKE_CURRENT_BINARY_DIR}/${target}.v")
	set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}.txt")
	set(tool "${PROJECT_SOURCE_DIR}/tools/cosim/mutate")
	set(options "")
	foreach(param ${arg_PARAMS})
		list(APPEND options --param ${param})
	endforeach()
	foreach(folder ${RN_RTL_INCLUDE_DIRS})
		list(APPEND options --include ${folder})
	endforeach()
	add_custom_command(OUTPUT "${netlist}" BYPRODUCTS "${list}"
		COMMAND ${RN_PYTHON} "${tool}" netlist --top ${arg_TOP} --out "${netlist}" --list "${list}"
			--count ${RN_MUTANTS} --seed ${RN_MUTANT_SEED} ${options} ${RN_RTL_PACKAGES} ${arg_SOURCES}
		DEPENDS ${arg_SOURCES} ${RN_RTL_PACKAGES} "${tool}"
		COMMENT "Mutating ${arg_TOP}" VERBATIM)
	rn_verilate(${target} TOP ${arg_TOP} PREFIX ${arg_PREFIX} SOURCES "${netlist}")
endfunction()
