/* Commands, what is waited for, timed changes, and the loop.
 *
 * A command is a line on standard input; each is answered by one JSON object on standard output,
 * at once or, as an "event", when it has come true. Sessions are numbered; A B are the first and
 * the one behind the last. Prefixes and addresses are numbers, except where ADDRESS stands.
 *
 *   sessions N ADDRESS ASN HOLD ADDRESS PORT  N sessions from consecutive addresses and ASes
 *   range FIRST COUNT       the /32 prefixes of which each session counts distinct present ones
 *   own I FIRST COUNT       the part of them that session I does not count: its own
 *   load I FILE             what session I is going to write
 *   connect A B             TCP, until the daemon's OPENs are here; ours are not sent yet
 *   open A B                -> established: times of the first and of the last
 *   blast A B               write what was loaded -> blast (the start), sent (each one's end)
 *   flood I, quiet I        the same again and again; quiet ends it after the whole file
 *   stall I 0|1             whether session I stops reading
 *   distinct A B N          -> complete: the last one has N distinct prefixes
 *   announced A B N         -> complete: the last one has been announced N prefixes
 *   watch PREFIX 0|1 A B    -> watching, then seen: the last one has heard of its announcement
 *   ping I PREFIX N MIN MAX A B   N times announce and withdraw, pauses in ms -> change, pinged
 *   nudge I MS              a KEEPALIVE of session I each so many milliseconds; 0 ends it
 *   totals A B              what was counted, and CPU seconds of this process
 *   quit
 *
 * All times are from CLOCK_MONOTONIC, in nanoseconds, which all processes share.
 */
#define _GNU_SOURCE
#include "tester.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ll
#define CHANGE_TIMEOUT (30000 * MS)

struct session sessions[MAX_SESSIONS];
int session_count;
uint32_t range_first, range_count, watched_prefix;
bool watched_announce;
int hold_time = 240;
int waiting, watchers;
int64_t last_event;

static int epoll;
static uint32_t daemon_address;
static int daemon_port;
static bool waits, watches;
static bool commands; /* whether there is something on standard input */
static int opening; /* sessions that are on their way to Established */
static int open_from, open_to;

static struct { /* KEEPALIVEs in quick succession, for a daemon that sleeps over its work */
    int session;
    int64_t every, due;
} nudge;

static struct { /* one prefix, announced and withdrawn, and the time until all have received it */
    bool on;
    int session, left, from, to;
    int64_t gap_min, gap_max, next, began;
    uint32_t prefix;
    bool announce;
} ping;

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void print_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("tester: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static struct session *session(int number) {
    if (number < 0 || number >= session_count) die("no session %d", number);
    return &sessions[number];
}

static void serve(int timeout_ms);

/* --------------------------------------------------------------------------- commands */

static void make_sessions(int many, const char *address, unsigned asn, int hold, const char *there,
                          int port) {
    if (many > MAX_SESSIONS) die("more than %d sessions", MAX_SESSIONS);
    uint32_t first = ntohl(inet_addr(address));
    daemon_address = ntohl(inet_addr(there));
    daemon_port = port;
    hold_time = hold;
    session_count = many;
    for (int i = 0; i < many; i++) {
        sessions[i] = (struct session){.number = i, .fd = -1, .asn = asn + (uint32_t)i,
                                       .address = first + (uint32_t)i};
    }
    print_line("{\"ok\": true}");
}

static void set_range(uint32_t first, uint32_t many) {
    range_first = first;
    range_count = many;
    for (int i = 0; i < session_count; i++) {
        free(sessions[i].seen);
        sessions[i].seen = calloc(many / 64 + 1, 8);
        if (!sessions[i].seen) die("no memory for %u prefixes", many);
        sessions[i].distinct = 0;
    }
    print_line("{\"ok\": true}");
}

static void load(struct session *s, const char *path) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0) die("%s: %s", path, strerror(errno));
    s->stream_size = (size_t)status.st_size;
    s->stream = mmap(NULL, s->stream_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (s->stream == MAP_FAILED) die("%s: %s", path, strerror(errno));
    close(file);
    print_line("{\"ok\": true}");
}

static void serve_for(int64_t duration) {
    for (int64_t now = now_ns(), until = now + duration; now < until; now = now_ns())
        serve((int)((until - now + MS - 1) / MS));
}

/* Connections one millisecond apart, for short listen queues; those refused are tried again. */
static void connect_all(int from, int to) {
    int64_t deadline = now_ns() + 60000 * MS;
    for (;;) {
        for (int i = from; i < to; i++) {
            if (sessions[i].state == CLOSED) {
                session_connect(session(i), epoll, daemon_address, daemon_port);
                serve_for(MS);
            }
        }
        bool all = true;
        for (int i = from; i < to; i++) all &= sessions[i].state >= GREETED;
        if (all) break;
        if (now_ns() > deadline)
            die("not connected, and greeted by an OPEN, within a minute");
        serve_for(50 * MS);
    }
    print_line("{\"event\": \"connected\", \"time\": %lld}", (long long)now_ns());
}

static void open_all(int from, int to) {
    opening = 1;
    open_from = from;
    open_to = to;
    for (int i = from; i < to; i++) session_open(session(i));
}

static void blast(int from, int to) {
    print_line("{\"event\": \"blast\", \"time\": %lld}", (long long)now_ns());
    for (int i = from; i < to; i++) session_blast(session(i), epoll);
}

static void wait_for(int from, int to, uint64_t distinct, uint64_t announced) {
    waits = true;
    waiting = 0;
    last_event = 0;
    for (int i = from; i < to; i++) {
        struct session *s = session(i);
        if ((distinct && s->distinct == distinct) || (announced && s->announced >= announced)) {
            last_event = now_ns();
            continue;
        }
        s->target = distinct;
        s->announced_target = announced;
        waiting++;
    }
}

static void watch(uint32_t prefix, bool announce, int from, int to) {
    watched_prefix = prefix;
    watched_announce = announce;
    watchers = 0;
    for (int i = from; i < to; i++) {
        session(i)->watching = true;
        watchers++;
    }
}

static void totals(int from, int to) {
    uint64_t updates = 0, announced = 0, withdrawn = 0, octets = 0, rounds = 0;
    int established = 0;
    for (int i = from; i < to; i++) {
        const struct session *s = session(i);
        updates += s->updates;
        announced += s->announced;
        withdrawn += s->withdrawn;
        octets += s->octets;
        rounds += s->rounds;
        established += s->state == ESTABLISHED;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_line("{\"updates\": %llu, \"announced\": %llu, \"withdrawn\": %llu, \"octets\": %llu, "
        "\"rounds\": %llu, \"established\": %d, \"cpu\": %.6f}",
        (unsigned long long)updates, (unsigned long long)announced, (unsigned long long)withdrawn,
        (unsigned long long)octets, (unsigned long long)rounds, established,
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

/* ------------------------------------------------------------------------ timed changes */

static int64_t gap(void) {
    int64_t spread = ping.gap_max - ping.gap_min;
    return ping.gap_min + (spread ? (int64_t)(drand48() * (double)spread) : 0);
}

static void start_ping(int number, uint32_t prefix, int times, double gap_min, double gap_max,
                       int from, int to) {
    ping.on = true;
    ping.session = session(number)->number;
    ping.prefix = prefix;
    ping.left = 2 * times;
    ping.gap_min = (int64_t)(gap_min * 1e6);
    ping.gap_max = (int64_t)(gap_max * 1e6);
    ping.from = from;
    ping.to = to;
    ping.announce = true;
    ping.began = 0;
    ping.next = now_ns() + gap();
}

static void step_ping(int64_t now) {
    if (ping.began && !watchers) {
        print_line("{\"event\": \"change\", \"announce\": %s, \"began\": %lld, \"took\": %lld}",
            ping.announce ? "true" : "false", (long long)ping.began,
            (long long)(last_event - ping.began));
        ping.began = 0;
        ping.announce = !ping.announce;
        ping.next = now + gap();
        if (!--ping.left) {
            ping.on = false;
            print_line("{\"event\": \"pinged\", \"time\": %lld}", (long long)now);
        }
    } else if (ping.began && now - ping.began > CHANGE_TIMEOUT) {
        die("%d sessions have not heard of a change in 30 s", watchers);
    } else if (!ping.began && now >= ping.next) {
        uint8_t message[MAX_MESSAGE];
        struct session *s = session(ping.session);
        size_t size = change_message(s, ping.prefix, ping.announce, message);
        watch(ping.prefix, ping.announce, ping.from, ping.to);
        ping.began = now_ns();
        session_send(s, message, size);
    }
}

/* ------------------------------------------------------------------------------ loop */

static bool command(char *line) {
    char word[32] = "", text[512] = "", there[64] = "";
    int a, b, c, d;
    unsigned u, v;
    double x, y;
    long long n;
    sscanf(line, "%31s", word);
    if (!strcmp(word, "sessions") &&
        sscanf(line, "%*s %d %511s %u %d %63s %d", &a, text, &u, &b, there, &c) == 6)
        make_sessions(a, text, u, b, there, c);
    else if (!strcmp(word, "range") && sscanf(line, "%*s %u %u", &u, &v) == 2)
        set_range(u, v);
    else if (!strcmp(word, "own") && sscanf(line, "%*s %d %u %u", &a, &u, &v) == 3) {
        session(a)->own_first = u;
        session(a)->own_count = v;
        print_line("{\"ok\": true}");
    } else if (!strcmp(word, "load") && sscanf(line, "%*s %d %511s", &a, text) == 2)
        load(session(a), text);
    else if (!strcmp(word, "connect") && sscanf(line, "%*s %d %d", &a, &b) == 2)
        connect_all(a, b);
    else if (!strcmp(word, "open") && sscanf(line, "%*s %d %d", &a, &b) == 2)
        open_all(a, b);
    else if (!strcmp(word, "blast") && sscanf(line, "%*s %d %d", &a, &b) == 2)
        blast(a, b);
    else if (!strcmp(word, "flood") && sscanf(line, "%*s %d", &a) == 1) {
        session(a)->again = true;
        blast(a, a + 1);
    } else if (!strcmp(word, "quiet") && sscanf(line, "%*s %d", &a) == 1) {
        session(a)->again = false; /* it prints "sent" at the end of the stream */
    } else if (!strcmp(word, "stall") && sscanf(line, "%*s %d %d", &a, &b) == 2) {
        session(a)->stalled = b;
        session_interest(session(a), epoll);
        print_line("{\"ok\": true}");
    } else if (!strcmp(word, "distinct") && sscanf(line, "%*s %d %d %lld", &a, &b, &n) == 3)
        wait_for(a, b, (uint64_t)n, 0);
    else if (!strcmp(word, "announced") && sscanf(line, "%*s %d %d %lld", &a, &b, &n) == 3)
        wait_for(a, b, 0, (uint64_t)n);
    else if (!strcmp(word, "watch") && sscanf(line, "%*s %u %d %d %d", &u, &a, &b, &c) == 4) {
        watch(u, a, b, c);
        watches = true;
        print_line("{\"event\": \"watching\", \"time\": %lld}", (long long)now_ns());
    } else if (!strcmp(word, "nudge") && sscanf(line, "%*s %d %d", &a, &b) == 2) {
        nudge.session = a;
        nudge.every = b * MS;
        nudge.due = 0;
        print_line("{\"ok\": true}");
    } else if (!strcmp(word, "ping") &&
               sscanf(line, "%*s %d %u %d %lf %lf %d %d", &a, &u, &b, &x, &y, &c, &d) == 7)
        start_ping(a, u, b, x, y, c, d);
    else if (!strcmp(word, "totals") && sscanf(line, "%*s %d %d", &a, &b) == 2)
        totals(a, b);
    else if (!strcmp(word, "quit"))
        return false;
    else
        die("no such command: %s", line);
    return true;
}

static bool read_commands(void) {
    static char pending[1 << 16];
    static size_t have;
    ssize_t got = read(0, pending + have, sizeof pending - 1 - have);
    if (got <= 0) return false;
    have += (size_t)got;
    pending[have] = 0;
    char *line = pending, *end;
    while ((end = strchr(line, '\n'))) {
        *end = 0;
        if (!command(line)) return false;
        line = end + 1;
    }
    have -= (size_t)(line - pending);
    memmove(pending, line, have);
    return true;
}

static void send_keepalives(int64_t now) {
    uint8_t message[MAX_MESSAGE];
    size_t size = keepalive_message(message);
    for (int i = 0; i < session_count; i++) {
        struct session *s = &sessions[i];
        if (s->state != ESTABLISHED || !hold_time) continue;
        int64_t every = hold_time * 1000 / 3 * MS;
        if (!s->keepalive_due)
            s->keepalive_due = now + (int64_t)(drand48() * (double)every); /* evenly spread */
        else if (now >= s->keepalive_due) {
            s->keepalive_due += every;
            if (!s->sending) session_send(s, message, size);
        }
    }
}

/* Handle what is there, once, waiting at most so long for it. */
static void serve(int timeout_ms) {
    static int64_t keepalives_due;
    struct epoll_event events[256];
    int many = epoll_wait(epoll, events, 256, timeout_ms);
    for (int i = 0; i < many; i++) {
        uint32_t number = events[i].data.u32;
        if (number == UINT32_MAX) {
            commands = true; /* carried out between turns */
            continue;
        }
        struct session *s = &sessions[number];
        if (events[i].events & EPOLLOUT && s->state != CLOSED) session_writable(s, epoll);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && s->state > CONNECTING &&
            !s->stalled)
            session_readable(s);
        else if (events[i].events & (EPOLLHUP | EPOLLRDHUP) && s->stalled && s->state != CLOSED) {
            print_line("{\"event\": \"lost\", \"session\": %d, \"reason\": \"reset\", \"time\": %lld}",
                s->number, (long long)now_ns());
            session_close(s);
        }
    }
    int64_t now = now_ns();
    if (now >= keepalives_due) {
        send_keepalives(now);
        keepalives_due = now + 20 * MS;
    }
    if (nudge.every && now >= nudge.due && sessions[nudge.session].state == ESTABLISHED) {
        uint8_t message[MAX_MESSAGE];
        session_send(&sessions[nudge.session], message, keepalive_message(message));
        nudge.due = now + nudge.every;
    }
    if (opening) {
        int64_t first = INT64_MAX, last = 0;
        bool all = true;
        for (int i = open_from; all && i < open_to; i++) {
            const struct session *s = &sessions[i];
            all = s->state == ESTABLISHED;
            if (s->established < first) first = s->established;
            if (s->established > last) last = s->established;
        }
        if (all) {
            opening = 0;
            print_line("{\"event\": \"established\", \"first\": %lld, \"last\": %lld}", (long long)first,
                (long long)last);
        }
    }
    if (waits && !waiting) {
        waits = false;
        print_line("{\"event\": \"complete\", \"time\": %lld}", (long long)last_event);
    }
    if (watches && !watchers) {
        watches = false;
        print_line("{\"event\": \"seen\", \"time\": %lld}", (long long)last_event);
    }
    if (ping.on) step_ping(now);
}

/* How long the loop may sleep. */
static int pause_ms(void) {
    int64_t now = now_ns(), until = now + 20 * MS;
    if (nudge.every && nudge.due < until) until = nudge.due;
    if (ping.on && !ping.began && ping.next < until) until = ping.next;
    return until <= now ? 0 : (int)((until - now) / MS);
}

int main(void) {
    epoll = epoll_create1(0);
    struct epoll_event input = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &input) < 0)
        die("epoll: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    srand48(1);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    for (;;) {
        serve(pause_ms());
        if (commands) {
            commands = false;
            if (!read_commands()) return 0;
        }
    }
}
