/*
 * What the adapters of all blocks share. An adapter is compiled once for each geometry, with RN_RTL_CLASS (the class
 * Verilator made), RN_RTL_HEADER (its header), RN_RTL_KIND (name of the kind), RN_RTL_GEOMETRY and RN_RTL_PARAMS.
 */
#ifndef RN_SYSTEMC_COSIM_ADAPTER_H
#define RN_SYSTEMC_COSIM_ADAPTER_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include <verilated.h>
#include <verilated_fst_c.h>
#include <verilated_save.h>

#include RN_RTL_HEADER

#include "systemc/cosim/rtl.h"

/* Checkpoints in memory instead of a file. */
class MemorySave final : public VerilatedSerialize
{
      public:
	MemorySave(uint8_t **to, size_t *length) : image(to), bytes(length)
	{
		m_isOpen = true;
		*bytes = 0;
	}
	~MemorySave() override
	{
		write_out();
	}
	void flush() override
	{
		write_out();
	}

      private:
	void write_out()
	{
		size_t more = static_cast<size_t>(m_cp - m_bufp);

		*image = static_cast<uint8_t *>(std::realloc(*image, *bytes + more));
		if (!*image)
			std::abort();
		std::memcpy(*image + *bytes, m_bufp, more);
		*bytes += more;
		m_cp = m_bufp;
	}
	uint8_t **image;
	size_t *bytes;
};

class MemoryRestore final : public VerilatedDeserialize
{
      public:
	MemoryRestore(const uint8_t *from, size_t length) : next(from), left(length)
	{
		m_isOpen = true;
		m_endp = m_cp = m_bufp;
	}
	void fill() override
	{
		size_t held = static_cast<size_t>(m_endp - m_cp);
		size_t more = bufferSize() - held;

		std::memmove(m_bufp, m_cp, held);
		if (more > left)
			more = left;
		std::memcpy(m_bufp + held, next, more);
		next += more;
		left -= more;
		m_cp = m_bufp;
		m_endp = m_bufp + held + more;
	}

      private:
	const uint8_t *next;
	size_t left;
};

/* One instance of the class. */
struct Block {
	VerilatedContext context;
	std::unique_ptr<RN_RTL_CLASS> top;
	VerilatedFstC trace;
};

static Block *block_of(void *block)
{
	return static_cast<Block *>(block);
}

/* A signal, which must be as wide as its frame expects: else the RTL's port is not the described message. */
static rn_rtl_pin make_pin(const char *name, void *signal, size_t bytes, uint32_t bits)
{
	size_t expected = bits <= 8    ? 1
			  : bits <= 16 ? 2
			  : bits <= 32 ? 4
			  : bits <= 64 ? 8
				       : (bits + 31) / 32 * 4;

	if (bytes != expected) {
		std::fprintf(stderr, "rnicsim: port %s of the RTL is not %u bits wide\n", name,
			     bits);
		std::abort();
	}
	return rn_rtl_pin{signal, bits};
}

#define PIN(signal, bits) make_pin(#signal, &(signal), sizeof(signal), (bits))

/* A signal whose width depends on the geometry: its bits beyond are 0. */
#define RAW_PIN(signal)                                                                            \
	rn_rtl_pin                                                                                 \
	{                                                                                          \
		&(signal), static_cast<uint32_t>(sizeof(signal) * 8)                               \
	}

/* Ports of a message: valid, ready and the message, of an array of @count. */
#define IN_PORT(top, name, message, count)                                                         \
	rn_rtl_port_pins                                                                           \
	{                                                                                          \
		PIN((top).name##_valid_i, count), PIN((top).name##_ready_o, count),                \
			PIN((top).name##_i, (count)*RN_MSG_##message##_BITS), {},                  \
		{                                                                                  \
		}                                                                                  \
	}
#define OUT_PORT(top, name, message, count)                                                        \
	rn_rtl_port_pins                                                                           \
	{                                                                                          \
		PIN((top).name##_valid_o, count), PIN((top).name##_ready_i, count),                \
			PIN((top).name##_o, (count)*RN_MSG_##message##_BITS), {},                  \
		{                                                                                  \
		}                                                                                  \
	}

/* The pins that only this block has. */
static void connect(RN_RTL_CLASS &top, rn_rtl_pins *pins);

static void connect_all(RN_RTL_CLASS &top, rn_rtl_pins *pins)
{
	*pins = {};
	pins->clk = PIN(top.clk_i, 1);
	pins->rst_n = PIN(top.rst_ni, 1);
	pins->cycle = PIN(top.cycle_i, 64);
	pins->idle = PIN(top.idle_o, 1);
	pins->wake = PIN(top.wake_o, 32);
	pins->stall = PIN(top.stall_o, 3);
	connect(top, pins);
}

/* As main() has them: the first one is the program. */
static void pass_arguments(Block *block, const rn_rtl_options *options)
{
	std::vector<const char *> args = {"rnicsim"};

	args.insert(args.end(), options->plusargs, options->plusargs + options->plusargs_count);
	block->context.commandArgs(static_cast<int>(args.size()), args.data());
}

static void *make(const rn_rtl_options *options, rn_rtl_pins *pins)
{
	Block *block = new Block;

	/* A failed assertion is reported by the frame, which knows where and when. */
	block->context.fatalOnError(false);
	block->context.traceEverOn(options->has_trace);
	pass_arguments(block, options);
	block->top = std::make_unique<RN_RTL_CLASS>(&block->context, options->name);
	connect_all(*block->top, pins);
	return block;
}

static void free_block(void *block)
{
	block_of(block)->top->final();
	delete block_of(block);
}

/* $value$plusargs, $error and $fatal go to the thread's context. */
static void eval(void *block)
{
	Verilated::threadContextp(&block_of(block)->context);
	block_of(block)->top->eval();
}

static bool has_failed(void *block)
{
	return block_of(block)->context.gotError();
}

static void save(void *block, uint8_t **image, size_t *bytes)
{
	MemorySave stream(image, bytes);

	stream << *block_of(block)->top;
}

static void restore(void *block, const uint8_t *image, size_t bytes)
{
	MemoryRestore stream(image, bytes);

	stream >> *block_of(block)->top;
}

static bool open_trace(void *block, const char *path)
{
	Block *self = block_of(block);

	self->top->trace(&self->trace, 99);
	self->trace.open(path);
	return self->trace.isOpen();
}

static void dump(void *block, uint64_t time_ps)
{
	block_of(block)->trace.dump(time_ps);
}

static void close_trace(void *block)
{
	block_of(block)->trace.close();
}

#define RN_RTL_MAKE_KIND(unit)                                                                     \
	extern "C" const rn_rtl_kind RN_RTL_KIND;                                                  \
	const rn_rtl_kind RN_RTL_KIND = {                                                          \
		unit, RN_RTL_GEOMETRY, RN_RTL_PARAMS, make, free_block,	 eval, has_failed,         \
		save, restore,	       open_trace,    dump, close_trace,                           \
	}

#endif
