// Tags of one set-associative cache (MPT or MTT): a tag memory and an age memory with an
// asynchronous read port, and a valid bit a line in flip-flops, since all of them are cleared at
// once. A line that is being read is valid here; rn_pte_misses knows which those are. True LRU: one
// bit a pair of ways says which is older.
`include "rn_assert.svh"

module rn_pte_tags #(
  parameter int unsigned Sets = 512,
  parameter int unsigned Ways = 2,
  parameter int unsigned NumberBits = 24,
  localparam int unsigned SetLog = $clog2(Sets),
  localparam int unsigned SetBits = (SetLog > 0) ? SetLog : 1,
  localparam int unsigned WayBits = (Ways > 1) ? $clog2(Ways) : 1,
  localparam int unsigned LineBits = $clog2(Sets * Ways + 1)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // The set that this cycle is about, by whatever of the below.
  input  logic [SetBits-1:0]         set_i,
  output logic [Ways*NumberBits-1:0] numbers_o,  // of the lines of the set
  output logic [Ways-1:0]            valid_o,

  // A lookup in it.
  input  logic [NumberBits-1:0]      number_i,
  output logic                       hit_o,
  output logic [WayBits-1:0]         hit_way_o,
  output logic [WayBits-1:0]         victim_way_o,  // empty, else least recently used
  output logic                       victim_valid_o,
  output logic [NumberBits-1:0]      victim_number_o,
  // The way of the hit, or of the victim with alloc_i, becomes the youngest.
  input  logic                       touch_i,
  input  logic                       alloc_i,  // number_i takes the victim's way

  // Lines of the set that go.
  input  logic [Ways-1:0]            drop_i,
  // All lines go.
  input  logic                       flush_i,
  output logic [LineBits-1:0]        count_o  // valid lines
);
  localparam int unsigned TagBits = NumberBits - SetLog;
  localparam int unsigned BaseBits = (Sets * Ways > 1) ? $clog2(Sets * Ways) : 1;
  localparam int unsigned Pairs = (Ways > 1) ? Ways * (Ways - 1) / 2 : 1;

  logic [Sets*Ways-1:0] valid_q;
  logic [Ways-1:0]      valid, valid_d, hits, alloc_ways;
  logic [Pairs-1:0]     age, age_d;
  logic [WayBits-1:0]   touched_way;
  logic [LineBits-1:0]  count_q, count_d;
  logic [BaseBits-1:0]  base;  // first line of the set

  assign base = BaseBits'(32'(set_i) * Ways);
  assign valid = valid_q[base +: Ways];
  assign valid_o = valid;

  // Tags, a memory a way.
  logic [TagBits-1:0] tag;
  assign tag = TagBits'(number_i >> SetLog);
  for (genvar w = 0; w < Ways; w++) begin : gen_way
    logic [TagBits-1:0] tag_mem [Sets];
    logic [TagBits-1:0] tag_read;

    assign tag_read = tag_mem[set_i];
    assign hits[w] = valid[w] && tag_read == tag;
    if (SetLog > 0) begin : gen_number
      assign numbers_o[w*NumberBits +: NumberBits] = {tag_read, set_i};
    end else begin : gen_whole_number
      assign numbers_o[w*NumberBits +: NumberBits] = tag_read;
    end
    assign alloc_ways[w] = alloc_i && victim_way_o == WayBits'(w);

    always_ff @(posedge clk_i) begin
      if (alloc_ways[w]) tag_mem[set_i] <= tag;
    end
  end

  always_comb begin
    hit_way_o = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (hits[w]) hit_way_o = WayBits'(w);
    end
  end
  assign hit_o = |hits;

  // Ages: bit of the pair i < j is set when i is the older one. Of ways that were never used it
  // says nothing, but those are empty, and an empty way comes first.
  logic [Pairs-1:0] age_mem [Sets];
  assign age = age_mem[set_i];
  assign touched_way = alloc_i ? victim_way_o : hit_way_o;

  function automatic int unsigned pair(input int unsigned i, input int unsigned j);
    pair = i * Ways - i * (i + 1) / 2 + (j - i - 1);
  endfunction

  always_comb begin
    age_d = age;
    for (int unsigned i = 0; i < Ways; i++) begin
      for (int unsigned j = i + 1; j < Ways; j++) begin
        if (touched_way == WayBits'(i)) age_d[pair(i, j)] = 1'b0;
        if (touched_way == WayBits'(j)) age_d[pair(i, j)] = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (touch_i) age_mem[set_i] <= age_d;
  end

  always_comb begin
    logic is_oldest;
    victim_way_o = '0;
    victim_valid_o = 1'b1;
    for (int unsigned w = 0; w < Ways; w++) begin
      is_oldest = 1'b1;
      for (int unsigned j = 0; j < Ways; j++) begin
        if (j > w) begin
          if (!age[pair(w, j)]) is_oldest = 1'b0;
        end else if (j < w) begin
          if (age[pair(j, w)]) is_oldest = 1'b0;
        end
      end
      if (is_oldest) victim_way_o = WayBits'(w);
    end
    for (int unsigned w = Ways; w > 0; w--) begin
      if (!valid[w-1]) begin
        victim_way_o = WayBits'(w - 1);
        victim_valid_o = 1'b0;
      end
    end
  end
  always_comb begin
    victim_number_o = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (victim_way_o == WayBits'(w)) victim_number_o = numbers_o[w*NumberBits +: NumberBits];
    end
  end

  // Valid bits and their number.
  assign valid_d = (valid | alloc_ways) & ~drop_i;
  always_comb begin
    count_d = count_q;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (alloc_ways[w] && !valid[w]) count_d = count_d + 1'b1;
      if (drop_i[w] && valid[w]) count_d = count_d - 1'b1;
    end
    if (flush_i) count_d = '0;
  end
  assign count_o = count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      count_q <= '0;
    end else begin
      count_q <= count_d;
      if (flush_i) valid_q <= '0;
      else if (alloc_i || drop_i != '0) valid_q[base +: Ways] <= valid_d;
    end
  end

  `RN_ASSERT(HitOneHot, $onehot0(hits))
  `RN_ASSERT(AllocOnMiss, !(alloc_i && hit_o))
  `RN_ASSERT(TouchAHit, !touch_i || alloc_i || hit_o)
  `RN_ASSERT(OneKindOfWrite, !(alloc_i && (drop_i != '0 || flush_i)))
  `RN_ASSERT(DropOnlyValid, (drop_i & ~valid) == '0)
  `RN_ASSERT_INIT(SetsPow2, Sets > 0 && (Sets & (Sets - 1)) == 0)
  `RN_ASSERT_INIT(WaysRange, Ways >= 1 && Ways <= 16)
endmodule
