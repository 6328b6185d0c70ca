/* One session: connecting, OPEN, reading prefixes, writing what was made beforehand. */
#define _GNU_SOURCE
#include "tester.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OPEN = 1, UPDATE = 2, NOTIFICATION = 3, KEEPALIVE = 4, HEADER = 19 };

static uint8_t buffer[MAX_MESSAGE + READ_SIZE];

static void put16(uint8_t *to, uint32_t value) {
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static void put32(uint8_t *to, uint32_t value) {
    put16(to, value >> 16);
    put16(to + 2, value & 0xffff);
}

static uint32_t get16(const uint8_t *from) { return (uint32_t)from[0] << 8 | from[1]; }

static uint32_t get32(const uint8_t *from) { return get16(from) << 16 | get16(from + 2); }

static size_t header(uint8_t *to, uint8_t type, size_t body) {
    memset(to, 0xff, 16);
    put16(to + 16, (uint32_t)(HEADER + body));
    to[18] = type;
    return HEADER + body;
}

size_t keepalive_message(uint8_t *to) { return header(to, KEEPALIVE, 0); }

static size_t open_message(const struct session *s, uint8_t *to) {
    /* Multiprotocol IPv4 unicast (RFC 4760) and four-octet AS (RFC 6793). */
    uint8_t *body = to + HEADER;
    body[0] = 4;
    put16(body + 1, s->asn > 65535 ? 23456 : s->asn);
    put16(body + 3, (uint32_t)hold_time);
    put32(body + 5, s->address);
    body[9] = 14;
    const uint8_t parameters[] = {2, 12, 1, 4, 0, 1, 0, 1, 65, 4};
    memcpy(body + 10, parameters, sizeof parameters);
    put32(body + 10 + sizeof parameters, s->asn);
    return header(to, OPEN, 10 + sizeof parameters + 4);
}

size_t change_message(const struct session *s, uint32_t prefix, bool announce, uint8_t *to) {
    uint8_t *body = to + HEADER;
    if (!announce) {
        put16(body, 5);
        body[2] = 32;
        put32(body + 3, prefix);
        put16(body + 7, 0);
        return header(to, UPDATE, 9);
    }
    const uint8_t attributes[] = {0x40, 1, 1, 0, 0x40, 2, 6, 2, 1};
    put16(body, 0);
    put16(body + 2, sizeof attributes + 4 + 7);
    memcpy(body + 4, attributes, sizeof attributes);
    uint8_t *at = body + 4 + sizeof attributes;
    put32(at, s->asn);
    at[4] = 0x40, at[5] = 3, at[6] = 4;
    put32(at + 7, s->address);
    at[11] = 32;
    put32(at + 12, prefix);
    return header(to, UPDATE, (size_t)(at + 16 - body));
}

void session_interest(struct session *s, int epoll) {
    struct epoll_event event = {.data.u32 = (uint32_t)s->number, .events = EPOLLRDHUP};
    if (!s->stalled) event.events |= EPOLLIN;
    if (s->sending || s->state == CONNECTING) event.events |= EPOLLOUT;
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, s->fd, &event) < 0) die("epoll: %s", strerror(errno));
}

void session_connect(struct session *s, int epoll, uint32_t address, int port) {
    int one = 1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (s->fd < 0) die("socket: %s", strerror(errno));
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(s->address)};
    if (bind(s->fd, (struct sockaddr *)&here, sizeof here) < 0)
        die("session %d: bind: %s", s->number, strerror(errno));
    struct sockaddr_in there = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(address),
                                .sin_port = htons((uint16_t)port)};
    if (connect(s->fd, (struct sockaddr *)&there, sizeof there) < 0 && errno != EINPROGRESS)
        die("session %d: connect: %s", s->number, strerror(errno));
    s->state = CONNECTING;
    s->rest_size = 0;
    struct epoll_event event = {.data.u32 = (uint32_t)s->number, .events = EPOLLOUT};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &event) < 0) die("epoll: %s", strerror(errno));
}

void session_open(struct session *s) {
    /* The daemon's OPEN is here already. */
    uint8_t message[MAX_MESSAGE];
    size_t size = open_message(s, message);
    session_send(s, message, size + keepalive_message(message + size));
    s->state = OPEN_CONFIRM;
}

void session_send(struct session *s, const uint8_t *message, size_t size) {
    /* Small messages while no other data is pending: the buffer has room. The reader reports the end
     * of the connection. */
    if (write(s->fd, message, size) != (ssize_t)size && errno != EPIPE && errno != ECONNRESET)
        die("session %d: write: %s", s->number, strerror(errno));
}

void session_close(struct session *s) {
    if (s->state == CLOSED) return;
    close(s->fd);
    s->state = CLOSED;
    s->sending = false;
}

/* A daemon that is not ready yet ends connections, too: those are tried again. */
static void lost(struct session *s, const char *reason, const uint8_t *data) {
    bool was_open = s->state > GREETED;
    if (data && was_open)
        print_line("{\"event\": \"lost\", \"session\": %d, \"reason\": \"%s %u/%u\", \"time\": %lld}",
            s->number, reason, data[0], data[1], (long long)now_ns());
    else if (was_open)
        print_line("{\"event\": \"lost\", \"session\": %d, \"reason\": \"%s\", \"time\": %lld}",
            s->number, reason, (long long)now_ns());
    else
        print_line("{\"event\": \"refused\", \"session\": %d}", s->number);
    session_close(s);
}

static void count(struct session *s, uint32_t prefix, bool announce, int64_t now) {
    uint32_t index = prefix - range_first;
    if (index < range_count) {
        if (prefix - s->own_first < s->own_count) return;
        uint64_t bit = 1ull << (index & 63);
        uint64_t *word = &s->seen[index >> 6];
        if (announce) {
            s->distinct += !(*word & bit);
            *word |= bit;
        } else {
            s->distinct -= !!(*word & bit);
            *word &= ~bit;
        }
    } else if (s->watching && prefix == watched_prefix && announce == watched_announce) {
        s->watching = false;
        s->saw = now;
        last_event = now;
        watchers--;
    }
}

static uint64_t prefixes(struct session *s, const uint8_t *at, const uint8_t *end, bool announce,
                         int64_t now) {
    uint64_t found = 0;
    while (at < end) {
        unsigned length = *at++;
        if (length > 32 || (at += (length + 7) / 8) > end)
            die("session %d: a prefix of %u bits", s->number, length);
        if (length == 32) count(s, get32(at - 4), announce, now);
        found++;
    }
    return found;
}

static void update(struct session *s, const uint8_t *body, size_t size, int64_t now) {
    if (size < 4) die("session %d: an UPDATE of %zu octets", s->number, size);
    const uint8_t *end = body + size;
    const uint8_t *gone_end = body + 2 + get16(body);
    if (gone_end + 2 > end || gone_end + 2 + get16(gone_end) > end)
        die("session %d: an UPDATE with impossible lengths", s->number);
    s->updates++;
    s->withdrawn += prefixes(s, body + 2, gone_end, false, now);
    s->announced += prefixes(s, gone_end + 2 + get16(gone_end), end, true, now);
}

static bool message(struct session *s, const uint8_t *data, size_t size, int64_t now) {
    switch (data[18]) {
    case UPDATE:
        update(s, data + HEADER, size - HEADER, now);
        break;
    case OPEN:
        s->state = GREETED;
        break;
    case KEEPALIVE:
        if (s->state == OPEN_CONFIRM) {
            s->state = ESTABLISHED;
            s->established = now;
        }
        break;
    case NOTIFICATION:
        lost(s, "NOTIFICATION", data + HEADER);
        return false;
    default:
        break;
    }
    return true;
}

void session_readable(struct session *s) {
    memcpy(buffer, s->rest, s->rest_size);
    ssize_t got = read(s->fd, buffer + s->rest_size, READ_SIZE);
    if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        lost(s, got ? strerror(errno) : "closed", NULL);
        return;
    }
    int64_t now = now_ns();
    s->octets += (uint64_t)got;
    const uint8_t *at = buffer, *end = buffer + s->rest_size + got;
    while (end - at >= HEADER) {
        size_t size = get16(at + 16);
        if (size < HEADER || size > MAX_MESSAGE)
            die("session %d: a message of %zu octets", s->number, size);
        if ((size_t)(end - at) < size) break;
        if (!message(s, at, size, now)) return;
        at += size;
    }
    s->rest_size = (size_t)(end - at);
    memcpy(s->rest, at, s->rest_size);
    if ((s->target && s->distinct == s->target) ||
        (s->announced_target && s->announced >= s->announced_target)) {
        s->target = s->announced_target = 0;
        s->reached = last_event = now;
        waiting--;
    }
}

void session_writable(struct session *s, int epoll) {
    if (s->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
            lost(s, strerror(error), NULL);
            return;
        }
        s->state = CONNECTED;
        session_interest(s, epoll);
        return;
    }
    while (s->sending) {
        ssize_t put = write(s->fd, s->stream + s->sent, s->stream_size - s->sent);
        if (put < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            lost(s, strerror(errno), NULL);
            return;
        }
        s->sent += (size_t)put;
        if (s->sent < s->stream_size) continue;
        s->rounds++;
        if (s->again) {
            s->sent = 0;
            return; /* the others have their turn */
        }
        s->sending = false;
        session_interest(s, epoll);
        print_line("{\"event\": \"sent\", \"session\": %d, \"time\": %lld}", s->number,
            (long long)now_ns());
    }
}

void session_blast(struct session *s, int epoll) {
    s->sent = 0;
    s->sending = true;
    session_writable(s, epoll);
    if (s->sending) session_interest(s, epoll);
}
