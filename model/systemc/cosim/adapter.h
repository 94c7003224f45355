/*
 * What the adapters of all blocks share. An adapter is compiled once for each geometry, with RN_RTL_CLASS (the class
 * Verilator made), RN_RTL_HEADER and RN_RTL_ABOUT (its header, and the one with its ports' widths), RN_RTL_KIND (name of
 * the kind), RN_RTL_GEOMETRY, RN_RTL_PARAMS, RN_RTL_TOP (name of the module) and RN_RTL_IS_OWN (whether it is the user's).
 */
#ifndef RN_SYSTEMC_COSIM_ADAPTER_H
#define RN_SYSTEMC_COSIM_ADAPTER_H

#ifndef RN_RTL_HAS_COVERAGE
#define RN_RTL_HAS_COVERAGE 0
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include <verilated.h>
#include <verilated_cov.h>
#include <verilated_fst_c.h>
#include <verilated_save.h>

#include RN_RTL_HEADER
#include RN_RTL_ABOUT

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
	std::unique_ptr<VerilatedFstC> trace;
};

static Block *block_of(void *block)
{
	return static_cast<Block *>(block);
}

/* Ports that are not as wide as the boundary has them: else the RTL's port is not the described message. */
static unsigned wrong_widths;

static rn_rtl_pin make_pin(const char *name, void *signal, uint32_t width, uint32_t bits)
{
	if (width != bits) {
		std::fprintf(stderr,
			     "rnicsim: RTL %s: port %s is %u bits wide, the unit's boundary has %u "
			     "(rtl/gen/rn_msg_pkg.sv)\n",
			     RN_RTL_TOP, name, width, bits);
		wrong_widths++;
	}
	return rn_rtl_pin{signal, bits};
}

#define PIN(top, name, bits) make_pin(#name, &(top).name, RN_WIDTH_##name, (bits))

/* A signal whose width depends on the geometry: its bits beyond are 0. */
#define RAW_PIN(top, name)                                                                         \
	rn_rtl_pin                                                                                 \
	{                                                                                          \
		&(top).name, static_cast<uint32_t>(sizeof((top).name) * 8)                         \
	}

/* Ports of a message: valid, ready and the message, of an array of @count. */
#define IN_PORT(top, name, message, count)                                                         \
	rn_rtl_port_pins                                                                           \
	{                                                                                          \
		PIN(top, name##_valid_i, count), PIN(top, name##_ready_o, count),                  \
			PIN(top, name##_i, (count)*RN_MSG_##message##_BITS), {},                   \
		{                                                                                  \
		}                                                                                  \
	}
#define OUT_PORT(top, name, message, count)                                                        \
	rn_rtl_port_pins                                                                           \
	{                                                                                          \
		PIN(top, name##_valid_o, count), PIN(top, name##_ready_i, count),                  \
			PIN(top, name##_o, (count)*RN_MSG_##message##_BITS), {},                   \
		{                                                                                  \
		}                                                                                  \
	}

/* The pins that only this block has. */
static void connect(RN_RTL_CLASS &top, rn_rtl_pins *pins);

static void connect_all(RN_RTL_CLASS &top, rn_rtl_pins *pins)
{
	*pins = {};
	pins->clk = PIN(top, clk_i, 1);
	pins->rst_n = PIN(top, rst_ni, 1);
	pins->cycle = PIN(top, cycle_i, 64);
	pins->idle = PIN(top, idle_o, 1);
	pins->wake = PIN(top, wake_o, 32);
	pins->stall = PIN(top, stall_o, 3);
	connect(top, pins);
#ifdef RN_RTL_MUTANTS
	pins->mutant = RAW_PIN(top, mutant_i);
#endif
}

/* As main() has them: the first one is the program. */
static void pass_arguments(Block *block, const rn_rtl_options *options)
{
	std::vector<const char *> args = {"rnicsim"};

	args.insert(args.end(), options->plusargs, options->plusargs + options->plusargs_count);
	block->context.commandArgs(static_cast<int>(args.size()), args.data());
}

/* $value$plusargs, $error, $fatal and the names of scopes go to the thread's context. */
static void enter(Block *block)
{
	Verilated::threadContextp(&block->context);
}

/* The thread never keeps a context that is gone. */
static void leave()
{
	Verilated::threadContextp(Verilated::defaultContextp());
}

static void *make(const rn_rtl_options *options, rn_rtl_pins *pins)
{
	Block *block = new Block;

	enter(block);
	/* A failed assertion is reported by the frame, which knows where and when. */
	block->context.fatalOnError(false);
	block->context.traceEverOn(options->has_trace);
	block->context.timeunit(-12);
	block->context.timeprecision(-12);
	/* Registers and memories hold anything before their reset, the same in every run. */
	block->context.randReset(2);
	block->context.randSeed(static_cast<int>(1 + options->seed % 0x7fffffff));
	pass_arguments(block, options);
	block->top = std::make_unique<RN_RTL_CLASS>(&block->context, options->name);
	wrong_widths = 0;
	connect_all(*block->top, pins);
	if (wrong_widths)
		std::exit(RN_RTL_EXIT_WRONG);
	return block;
}

static void free_block(void *block)
{
	enter(block_of(block));
	block_of(block)->top->final();
	delete block_of(block);
	leave();
}

static void eval(void *block)
{
	enter(block_of(block));
	block_of(block)->top->eval();
}

static bool has_failed(void *block)
{
	return block_of(block)->context.gotError();
}

#if RN_RTL_HAS_COVERAGE /* which Verilator cannot save */
static void save(void *, uint8_t **, size_t *)
{
}

static void restore(void *, const uint8_t *, size_t)
{
}

static void write_coverage(void *block, const char *path)
{
	block_of(block)->context.coveragep()->write(path);
}
#else
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

static void write_coverage(void *, const char *)
{
}
#endif

static bool open_trace(void *block, const char *path)
{
	Block *self = block_of(block);

	enter(self);
	self->trace = std::make_unique<VerilatedFstC>();
	self->trace->set_time_unit("1ps");
	self->trace->set_time_resolution("1ps");
	self->top->trace(self->trace.get(), 99);
	self->trace->open(path);
	return self->trace->isOpen();
}

static void dump(void *block, uint64_t time_ps)
{
	block_of(block)->trace->dump(time_ps);
}

static void close_trace(void *block)
{
	block_of(block)->trace->close();
}

#define RN_RTL_MAKE_KIND(unit)                                                                     \
	extern "C" const rn_rtl_kind RN_RTL_KIND;                                                  \
	const rn_rtl_kind RN_RTL_KIND = {                                                          \
		unit,	       RN_RTL_GEOMETRY,                                                    \
		RN_RTL_PARAMS, RN_RTL_TOP,                                                         \
		RN_RTL_IS_OWN, RN_RTL_DIGEST,                                                      \
		make,	       free_block,                                                         \
		eval,	       has_failed,                                                         \
		save,	       restore,                                                            \
		open_trace,    dump,                                                               \
		close_trace,   write_coverage,                                                     \
	}

#endif
