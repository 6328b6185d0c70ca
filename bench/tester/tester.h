/* The other side of a measured BGP speaker: many sessions in one process, driven by commands.
 *
 * It speaks as much BGP as a session needs and no more: its UPDATEs were made beforehand and are
 * only written; of received ones it looks at every prefix, and at nothing else. It must never
 * be what is waited for, so nothing is allocated, and no system call made, per message.
 *
 * session.c: one session; main.c: commands (listed there), waiting, and the loop.
 */
#ifndef TESTER_H
#define TESTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SESSIONS = 1100, MAX_MESSAGE = 4096, READ_SIZE = 1 << 20 };

/* GREETED: the daemon's OPEN has come, ours is not sent. */
enum state { CLOSED, CONNECTING, CONNECTED, GREETED, OPEN_CONFIRM, ESTABLISHED };

struct session {
    int number;
    int fd;
    enum state state;
    uint32_t address; /* host byte order, as everywhere here */
    uint32_t asn;
    int64_t established; /* CLOCK_MONOTONIC, nanoseconds, as all times */

    /* What has come. */
    uint8_t rest[MAX_MESSAGE];
    size_t rest_size;
    uint64_t *seen; /* a bit for each prefix of the watched range */
    uint64_t distinct;
    uint32_t own_first, own_count; /* a part of the range that is not counted here: its own */
    uint64_t updates, announced, withdrawn, octets;
    uint64_t target; /* how many distinct prefixes are waited for; 0 for none */
    uint64_t announced_target; /* the same, of all that were announced */
    int64_t reached;
    bool watching; /* for the one prefix that is watched */
    int64_t saw;

    /* What is sent. */
    const uint8_t *stream; /* a file of UPDATEs, mapped */
    size_t stream_size, sent;
    bool sending, again;
    bool stalled;
    uint64_t rounds;
    int64_t keepalive_due;
};

extern struct session sessions[MAX_SESSIONS];
extern int session_count;
extern uint32_t range_first, range_count; /* the /32 prefixes that are counted */
extern uint32_t watched_prefix;           /* the /32 that is watched */
extern bool watched_announce;
extern int hold_time;
extern int waiting; /* sessions that have not reached their target */
extern int watchers; /* sessions that have not seen the watched prefix */
extern int64_t last_event; /* when the last of either happened */

int64_t now_ns(void);
void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void session_connect(struct session *s, int epoll, uint32_t address, int port);
void session_open(struct session *s);
void session_readable(struct session *s);
void session_writable(struct session *s, int epoll);
void session_send(struct session *s, const uint8_t *message, size_t size);
void session_blast(struct session *s, int epoll);
void session_interest(struct session *s, int epoll);
void session_close(struct session *s);
size_t keepalive_message(uint8_t *to);
size_t change_message(const struct session *s, uint32_t prefix, bool announce, uint8_t *to);

#endif
