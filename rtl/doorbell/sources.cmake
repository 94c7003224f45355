# The doorbell unit's RTL, packages first, and the geometries that are Verilated.
set(RN_RTL_DOORBELL_SOURCES
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_pkg.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_predecode.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_fifo.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_kept.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_collect.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_registers.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell_read.sv"
	"${CMAKE_CURRENT_LIST_DIR}/rn_doorbell.sv")
set(RN_RTL_DOORBELL_PARAMS_shipped
	FifoEntries=64 IntervalCycles=1 DecodeLatencyCycles=4 ReadLatencyCycles=8 BlueflameBuffers=16
	Recover=0 MaxQps=16384)
set(RN_RTL_DOORBELL_PARAMS_stress
	FifoEntries=2 IntervalCycles=2 DecodeLatencyCycles=1 ReadLatencyCycles=2 BlueflameBuffers=2
	Recover=1 MaxQps=16384)
