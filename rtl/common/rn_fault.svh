// Hand-made faults for mutation tests: compiled in with RN_FAULTS, one of them selected by
// +fault=N. Without RN_FAULTS the macro is a constant 0.
`ifndef RN_FAULT_SVH
`define RN_FAULT_SVH

`ifdef RN_FAULTS

`define RN_FAULT_DECL \
  int unsigned fault_sel; \
  initial if ($value$plusargs("fault=%d", fault_sel) == 0) fault_sel = 0;
`define RN_FAULT(number_) (fault_sel == (number_))

`else

`define RN_FAULT_DECL
`define RN_FAULT(number_) 1'b0

`endif

`endif
