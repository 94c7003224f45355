// Assertions, empty in synthesis (SYNTHESIS or YOSYS defined). Immediate ones inside clocked
// blocks, since that is what every tool here understands. A module that uses them has clk_i and
// rst_ni.
`ifndef RN_ASSERT_SVH
`define RN_ASSERT_SVH

`ifdef SYNTHESIS
`define RN_NO_ASSERT
`endif
`ifdef YOSYS
`define RN_NO_ASSERT
`endif

`ifdef RN_NO_ASSERT

`define RN_ASSERT(name_, expr_)
`define RN_ASSERT_STABLE(name_, valid_, ready_, data_, width_)
`define RN_ASSERT_INIT(name_, expr_)

`else

// expr_ holds at every rising edge outside of reset.
`define RN_ASSERT(name_, expr_) \
  always @(posedge clk_i or negedge rst_ni) begin : name_ \
    if (rst_ni) begin \
      assert (expr_) else begin \
        $error("%m: assertion failed: %s", `"expr_`"); \
        $fatal(1); \
      end \
    end \
  end

// What is offered and not taken stays offered, and does not change.
`define RN_ASSERT_STABLE(name_, valid_, ready_, data_, width_) \
  logic name_``_pending_q; \
  logic [(width_)-1:0] name_``_data_q; \
  always_ff @(posedge clk_i or negedge rst_ni) begin \
    if (!rst_ni) name_``_pending_q <= 1'b0; \
    else name_``_pending_q <= (valid_) && !(ready_); \
  end \
  always_ff @(posedge clk_i) name_``_data_q <= (data_); \
  `RN_ASSERT(name_, !name_``_pending_q || ((valid_) && name_``_data_q == (data_)))

// A parameter check.
`define RN_ASSERT_INIT(name_, expr_) \
  initial begin : name_ \
    assert (expr_) else begin \
      $error("%m: parameters: %s", `"expr_`"); \
      $fatal(1); \
    end \
  end

`endif

`endif
