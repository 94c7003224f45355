# The PTE cache's RTL, packages first, and the geometries that are Verilated.
set(RN_RTL_PTE_CACHE_SOURCES
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_cache_pkg.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_check.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_tags.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_misses.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_inval.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_results.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_slots.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_stalled.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_reads.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_wake.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_pte_cache.sv")
set(RN_RTL_PTE_CACHE_PARAMS_shipped
	IntervalCycles=1 MptCycles=2 MttCycles=2 FillCycles=1 RequestSlots=64 MptSets=512 MptWays=2
	MptMisses=8 MttSets=512 MttWays=2 MttLineEntries=8 MttMisses=8)
set(RN_RTL_PTE_CACHE_PARAMS_stress
	IntervalCycles=2 MptCycles=1 MttCycles=3 FillCycles=2 RequestSlots=6 MptSets=2 MptWays=2
	MptMisses=2 MttSets=2 MttWays=2 MttLineEntries=2 MttMisses=3)
