/*
 * Doubly linked lists inside the objects they hold.
 */
#ifndef RN_DRIVER_LIST_H
#define RN_DRIVER_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rn_list {
	struct rn_list *next;
	struct rn_list *prev;
};

#define rn_list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void rn_list_init(struct rn_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool rn_list_is_empty(const struct rn_list *list)
{
	return list->next == list;
}

/** Append @node behind the last of @list. */
static inline void rn_list_add(struct rn_list *list, struct rn_list *node)
{
	node->next = list;
	node->prev = list->prev;
	list->prev->next = node;
	list->prev = node;
}

/** Take @node out; taking it out again does nothing. */
static inline void rn_list_remove(struct rn_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	rn_list_init(node);
}

#endif
