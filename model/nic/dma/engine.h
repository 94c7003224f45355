/*
 * Inside of the DMA engine, for its own sources: dma.c (construction, tick), requests.c (acceptance
 * and translation), issue.c (arbitration and splitting), reads.c (tags, completions, answers).
 */
#ifndef RN_NIC_DMA_ENGINE_H
#define RN_NIC_DMA_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/dma/dma.h"
#include "sim/block.h"
#include "sim/stats.h"

#define JOBS_MAX 64   /* of a channel; a power of two: a bit each in a word */
#define READS_MAX 256 /* of a channel; a power of two */
#define RUNS_MAX 2    /* pages are at least 4 KiB, requests at most */

#define RN_DMA_COUNTERS(X)                                                                         \
	X(read_requests, "requests", "reads accepted")                                             \
	X(write_requests, "requests", "writes accepted")                                           \
	X(msi_requests, "requests", "MSI-X messages accepted")                                     \
	X(read_bytes, "bytes", "bytes that reads asked of host memory")                            \
	X(write_bytes, "bytes", "bytes written to host memory")                                    \
	X(read_tlps, "TLPs", "memory reads sent")                                                  \
	X(write_tlps, "TLPs", "memory writes sent")                                                \
	X(translations, "requests", "translations asked for")                                      \
	X(protection_errors, "requests", "requests refused by the PTE cache")                      \
	X(aborts, "requests", "requests that the completer or a table read aborted")               \
	X(unexpected_completions, "TLPs", "completions of no outstanding read, dropped")           \
	X(tags_max, "tags", "most tags in use at once")                                            \
	X(tags_held_ps, "tag ps", "integral of tags in use over time")                             \
	X(reassembly_max, "bytes", "most reassembly buffer in use at once")

struct rn_dma_counters {
	RN_DMA_COUNTERS(RN_COUNTER_FIELD)
};

/* Bytes at consecutive physical addresses: the translation of (part of) a page. */
struct run {
	uint64_t pa;
	uint32_t bytes; /* not issued yet */
	uint8_t epoch;
};

/* A request that waits for translation or for its turn. */
struct job {
	struct rn_dma_req req;
	uint32_t known_bytes;  /* translated */
	uint32_t issued_bytes; /* turned into TLPs */
	uint16_t read;	       /* its entry in the channel's reads, once issued_bytes > 0 */
	bool is_asking;	       /* a translation is on its way */
	uint8_t status;	       /* enum rn_dma_status; an error stops it */
	uint8_t run_count;
	struct run runs[RUNS_MAX]; /* the first is in use */
};

/* A read whose TLPs are under way. */
struct read {
	uint16_t token;
	uint16_t tlps;	/* outstanding */
	bool is_issued; /* no more TLPs will come */
	uint8_t status;
	uint8_t epoch_count;
	uint8_t epochs[RUNS_MAX];
};

struct tag {
	uint16_t read;
	uint8_t channel;
	bool in_use;
	uint32_t left_bytes;
	uint32_t bytes;
};

struct channel {
	struct job *jobs;      /* JOBS_MAX, a ring */
	uint64_t untranslated; /* a bit each job that needs a translation and is not asking */
	uint32_t job_head;     /* free running */
	uint32_t job_tail;
	struct read *reads; /* READS_MAX, a ring */
	uint32_t read_head;
	uint32_t read_tail;
	uint32_t weight;
};

struct rn_dma {
	struct rn_block block;
	struct rn_block completion_block; /* never ticks: the account of the completion side */
	struct rn_nic_env env;
	struct rn_dma_params params;
	struct rn_dma_ports ports;
	char *name;
	char *completion_name;
	uint32_t mps_bytes;
	uint32_t mrrs_bytes;
	struct rn_dma_counters counters;

	struct channel channels[RN_DMA_CH_COUNT];
	uint32_t ready;	       /* a bit each channel whose oldest job can go */
	uint32_t untranslated; /* a bit each channel with an untranslated job */
	uint32_t arrivals;     /* a bit each channel whose request fifo holds something */
	uint32_t answering;    /* a bit each channel whose oldest read is done and not answered */

	uint32_t asked_count; /* translations under way */
	uint32_t ask_turn;    /* channel that comes first next */
	uint64_t issue_cycle; /* first cycle in which the next TLP can go */
	uint32_t issue_turn;
	uint32_t issue_left; /* turns in a row that issue_turn still has */

	struct tag *tags;
	uint16_t *free_tags; /* a stack */
	uint32_t free_count;
	uint32_t free_bytes; /* of the reassembly buffer */
	uint64_t tags_since_ps;
	uint64_t completion_cycle;

	uint8_t *releases; /* epochs to release, a ring that holds all there can be */
	uint32_t release_head;
	uint32_t release_tail;
	uint32_t release_mask;
};

static inline struct job *rn_dma_job(struct channel *channel, uint32_t idx)
{
	return &channel->jobs[idx % JOBS_MAX];
}

static inline struct read *rn_dma_read(struct channel *channel, uint32_t idx)
{
	return &channel->reads[idx % READS_MAX];
}

static inline struct job *rn_dma_head(struct channel *channel)
{
	return channel->job_head == channel->job_tail ? (void *)0
						      : rn_dma_job(channel, channel->job_head);
}

/** Bring dma->ready up to date with the oldest job of channel @ch. */
void rn_dma_update_ready(struct rn_dma *dma, unsigned ch);

/* requests.c */
/** Take at most one new request of each channel. */
void rn_dma_accept(struct rn_dma *dma);
/** Take one answer of the PTE cache; ask it for one page. */
void rn_dma_translate(struct rn_dma *dma);
/** The oldest job of @ch is through: forget it. */
void rn_dma_pop_job(struct rn_dma *dma, unsigned ch);
/** Give a translation back; it reaches the PTE cache when its fifo has room. */
void rn_dma_release(struct rn_dma *dma, uint8_t epoch);
void rn_dma_flush_releases(struct rn_dma *dma);

/* issue.c */
/**
 * Give one channel a turn if it is time: cycles used; why nothing went although there was work in
 * @stall.
 */
uint32_t rn_dma_issue(struct rn_dma *dma, uint64_t cycle, enum rn_stall *stall);

/* reads.c */
void rn_dma_complete(struct rn_dma *dma, uint64_t cycle);
/** Answer the reads of @ch that are done, oldest first. */
void rn_dma_answer(struct rn_dma *dma, unsigned ch);
/** A tag for @bytes of the read @read_idx of channel @ch; there is one, and the bytes are free. */
uint16_t rn_dma_take_tag(struct rn_dma *dma, unsigned ch, uint16_t read_idx, uint32_t bytes);

#endif
