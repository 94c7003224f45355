// How long the block need not be clocked if its inputs stay as they are: until the first of the
// cycles that somebody waits for, for ever (all ones) if nobody does. Combinational; the answer
// counts in a cycle in which nothing is done, and then what is waited for is due later (nothing
// takes 2^32 cycles).
module rn_pte_wake #(
  localparam int unsigned Waiting = 4,
  localparam int unsigned CycleBits = rn_pte_cache_pkg::CycleBits
) (
  input  logic [CycleBits-1:0]         cycle_i,
  input  logic                         active_i,  // something is done in this cycle
  input  logic [Waiting-1:0]           want_i,
  input  logic [Waiting*CycleBits-1:0] due_i,
  output logic                         idle_o,
  output logic [31:0]                  wake_o
);
  logic [31:0] left;

  always_comb begin
    wake_o = '1;
    left = '0;
    for (int unsigned i = 0; i < Waiting; i++) begin
      left = due_i[i*CycleBits +: 32] - cycle_i[31:0];
      if (want_i[i] && left < wake_o) wake_o = left;
    end
  end
  assign idle_o = !active_i && wake_o != 32'd1;

  logic [Waiting-1:0] unused;
  for (genvar i = 0; i < Waiting; i++) begin : gen_unused
    assign unused[i] = ^{due_i[i*CycleBits+32 +: 32], cycle_i[CycleBits-1:32]};
  end
endmodule
