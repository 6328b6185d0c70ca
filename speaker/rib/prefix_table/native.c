/* A prefix table: octets to references, in the order of insertion. The interface, and what each
 * method promises, is in `speaker/rib/prefix_table/dictionary.py`, its Python form; this one takes a
 * fifth of its memory and a third of its time, and behaves alike.
 *
 * Entries stand in arrays in the order of insertion: the octets of a key behind their length, and the
 * number of its value. `index` finds an entry: open addressing with linear probing, in which a slot
 * has 32 bits of the key's hash and the entry's number plus one (0 is free). The hash is keyed by
 * random numbers, as peers choose the keys. A removed entry stays until the gaps are closed, the last
 * one goes at once.
 *
 * No step is long: where the index gets another size, both are used until `tidy`, which each change of
 * the keys ends with, has moved all slots, some for each key; so it closes gaps, some entries each time.
 *
 * Values are few, and each has one reference for all of its keys: `values`, found by address through
 * `value_index`. A value without keys is put on a list, and its reference is given up by `bury` at the
 * end of each method, when the table is whole again: a destructor may run any code.
 *
 * Everything is allocated before anything changes (`reserve`, `reserve_values`, and the results of
 * methods), or what changed is undone, so that a MemoryError leaves the table as it was.
 *
 * A `Walk` is a place among the entries, which follows them when they move.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define MAX_KEY 255
#define MAX_PREFIX 33           /* octets of a prefix of 255 bits */
#define MAX_ENTRIES (UINT32_MAX - 2)
#define REMOVED UINT32_MAX      /* number of the value of a removed entry */
#define NOT_QUEUED UINT32_MAX   /* `next` of a value that is in use and on no list */
#define END (UINT32_MAX - 1)    /* `next` of the last value of a list */
#define ABSENT ((Py_ssize_t)-1)
#define NO_ENTRY UINT32_MAX     /* `entry` of a key that has none */
#define MOVED UINT64_MAX        /* a slot of the index of before that is in use no more */

#ifndef SOURCE
#define SOURCE 0 /* the checksum of this file, by which an older module is known (build.py) */
#endif

#ifndef SMALL
#define SMALL 4096 /* slots that are moved at once */
#endif
#ifndef WORK
#define WORK 32 /* slots that are moved, and entries, for each changed key */
#endif

static uint64_t seed[2];

typedef struct {
    PyObject *object; /* NULL: free */
    uint32_t uses;    /* keys with this value, and methods that hold it */
    uint32_t next;    /* of the free values, or of the values that wait for `bury` */
} Value;

typedef struct {
    PyObject_HEAD
    uint8_t *keys;       /* `stride` octets an entry: the length of the key, and the key */
    uint32_t *numbers;   /* the number of each entry's value */
    Py_ssize_t used;     /* entries, removed ones included */
    Py_ssize_t live;     /* entries that are not removed */
    Py_ssize_t capacity; /* of `keys` and `numbers` */
    Py_ssize_t stride;
    uint64_t *index;
    size_t slots;        /* of `index`, a power of two, or 0 */
    uint64_t *before;    /* the index of before, while its slots are moved; or NULL */
    size_t before_slots, before_at; /* how many they are, and the next one */
    int closing;         /* whether gaps are being closed: */
    Py_ssize_t to, from; /* all entries between are removed, all before are in place */
    Value *values;
    uint32_t values_used, values_free, values_capacity, free_value, released;
    uint32_t *value_index; /* numbers of values, REMOVED where free */
    size_t value_slots;    /* of `value_index`, a power of two, or 0 */
    uint64_t changes;      /* of the set of keys */
    struct Walk *walks;    /* that are not at their end */
} Table;

typedef struct Walk {
    PyObject_HEAD
    Table *table;         /* NULL at the end */
    struct Walk *next, **link;
    Py_ssize_t entry;     /* the next one */
    Py_ssize_t end;       /* entries of when the walk began */
    Py_ssize_t size;      /* of a list */
} Walk;

typedef struct {
    const uint8_t *octets;
    uint32_t size;
    uint32_t hash;
    uint32_t entry;  /* of a method that changes its keys in two steps: their entries, */
    uint32_t number; /* and the values of entries that it has marked as removed */
} Key;

/* ------------------------------------------------------------------ keys and the index */

static inline uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_of(const uint8_t *octets, size_t size) {
    uint64_t sum = seed[0] ^ size, part;
    for (; size >= 8; octets += 8, size -= 8) {
        memcpy(&part, octets, 8);
        sum = mix(sum ^ part, seed[1]);
    }
    part = 0;
    memcpy(&part, octets, size);
    return (uint32_t)mix(mix(sum ^ part, seed[1]), seed[0]);
}

static inline uint8_t *octets_of(Table *table, Py_ssize_t entry) {
    return table->keys + entry * table->stride;
}

static inline void prefetch(Table *table, uint32_t hash) {
    if (table->slots)
        __builtin_prefetch(&table->index[hash & (table->slots - 1)]);
}

static inline Py_ssize_t find_in(Table *table, const uint64_t *index, size_t slots, Key key) {
    for (size_t at = key.hash;; at++) {
        uint64_t slot = index[at &= slots - 1];
        if (!slot)
            return ABSENT;
        if ((uint32_t)(slot >> 32) == key.hash && slot != MOVED) {
            Py_ssize_t entry = (Py_ssize_t)((uint32_t)slot - 1);
            const uint8_t *octets = octets_of(table, entry);
            if (octets[0] == key.size && !memcmp(octets + 1, key.octets, key.size))
                return entry;
        }
    }
}

/* Return the entry of a key, or ABSENT. */
static inline Py_ssize_t find(Table *table, Key key) {
    if (!table->live || key.size >= (uint32_t)table->stride)
        return ABSENT;
    Py_ssize_t entry = find_in(table, table->index, table->slots, key);
    if (entry == ABSENT && table->before)
        entry = find_in(table, table->before, table->before_slots, key);
    return entry;
}

/* Return the slot of an entry that is in one of the indexes. */
static uint64_t *slot_of(Table *table, Py_ssize_t entry) {
    const uint8_t *octets = octets_of(table, entry);
    uint32_t hash = hash_of(octets + 1, octets[0]), wanted = (uint32_t)entry + 1;
    uint64_t *index = table->index;
    size_t last = table->slots - 1, at = hash & last;
    for (; index[at]; at = (at + 1) & last)
        if ((uint32_t)index[at] == wanted)
            return &index[at];
    index = table->before;
    last = table->before_slots - 1;
    for (at = hash & last; (uint32_t)index[at] != wanted;)
        at = (at + 1) & last;
    return &index[at];
}

static void put(uint64_t *index, size_t slots, uint64_t slot) {
    size_t at = (size_t)(slot >> 32) & (slots - 1);
    while (index[at])
        at = (at + 1) & (slots - 1);
    index[at] = slot;
}

/* Free the slot `gap` of an index of open addressing whose last slot is `last`; those behind it move up,
 * so that none is behind a gap. `HOME` is where what a slot has belongs, `FREE` what a free one has. */
#define FREE_SLOT(index, last, gap, FREE, HOME)                                                    \
    do {                                                                                           \
        for (size_t at = (gap); (index)[at = (at + 1) & (last)] != (FREE);)                        \
            if (((at - (HOME((index)[at]))) & (last)) >= ((at - (gap)) & (last))) {                \
                (index)[gap] = (index)[at];                                                        \
                (gap) = at;                                                                        \
            }                                                                                      \
        (index)[gap] = (FREE);                                                                     \
    } while (0)

static void remove_slot(Table *table, Py_ssize_t entry) {
    uint64_t *slot = slot_of(table, entry);
    if (slot < table->index || slot >= table->index + table->slots) {
        *slot = MOVED;
        return;
    }
    size_t last = table->slots - 1, gap = (size_t)(slot - table->index);
#define HASH(slot) ((size_t)((slot) >> 32))
    FREE_SLOT(table->index, last, gap, 0, HASH);
#undef HASH
}

/* ------------------------------------------------------------------ memory */

static int resize(Table *table, Py_ssize_t capacity) {
    Py_ssize_t before = table->capacity;
    if (capacity < before)
        table->capacity = capacity; /* true of both arrays, even if one of them stays */
    uint8_t *keys = PyMem_Realloc(table->keys, (size_t)capacity * (size_t)table->stride);
    if (keys)
        table->keys = keys;
    uint32_t *numbers = PyMem_Realloc(table->numbers, (size_t)capacity * sizeof(uint32_t));
    if (numbers)
        table->numbers = numbers;
    if (!keys || !numbers)
        return -1;
    table->capacity = capacity;
    return 0;
}

/* Make room for longer keys. */
static int widen(Table *table, Py_ssize_t stride) {
    uint8_t *keys = PyMem_Malloc((size_t)table->capacity * (size_t)stride + 1);
    if (!keys)
        return -1;
    for (Py_ssize_t entry = 0; entry < table->used; entry++)
        memcpy(keys + entry * stride, octets_of(table, entry), (size_t)table->stride);
    PyMem_Free(table->keys);
    table->keys = keys;
    table->stride = stride;
    return 0;
}

/* Move some slots of the index of before to the present one. */
static void move_slots(Table *table, size_t count) {
    if (!table->before)
        return;
    size_t left = table->before_slots - table->before_at;
    size_t end = table->before_at + (count < left ? count : left);
    for (size_t at = table->before_at; at < end; at++) {
        uint64_t slot = table->before[at];
        if (slot && slot != MOVED) {
            put(table->index, table->slots, slot);
            table->before[at] = MOVED; /* not free: others may follow it */
        }
    }
    table->before_at = end;
    if (end == table->before_slots) {
        PyMem_Free(table->before);
        table->before = NULL;
        table->before_slots = 0;
    }
}

/* Begin to use an index of another size. */
static int begin_index(Table *table, size_t slots) {
    uint64_t *index = PyMem_Calloc(slots, sizeof(uint64_t));
    if (!index)
        return -1;
    move_slots(table, table->before_slots);
    table->before = table->index;
    table->before_slots = table->slots;
    table->before_at = 0;
    table->index = index;
    table->slots = slots;
    if (table->before_slots <= SMALL)
        move_slots(table, SMALL);
    return 0;
}

/* Give back memory that is not needed; a failure changes nothing. */
static void give_back(Table *table) {
    size_t slots = 8;
    while ((size_t)table->live * 2 > slots)
        slots *= 2;
    if (slots < table->slots)
        (void)begin_index(table, slots);
    Py_ssize_t capacity = table->used + table->live / 8 + 8;
    if (capacity < table->capacity)
        (void)resize(table, capacity);
}

static void begin_closing(Table *table) {
    if (!table->closing) {
        table->closing = 1;
        table->to = table->from = 0;
    }
}

/* Close gaps of removed entries: move some of those behind. */
static void close_gaps(Table *table, Py_ssize_t count) {
    if (!table->closing || !count)
        return;
    Py_ssize_t left = table->used - table->from, end = table->from + (count < left ? count : left);
    for (; table->from < end; table->from++) {
        Py_ssize_t from = table->from, to = table->to;
        if (from + 8 < end) {
            const uint8_t *octets = octets_of(table, from + 8);
            prefetch(table, hash_of(octets + 1, octets[0]));
        }
        if (table->numbers[from] == REMOVED)
            continue;
        if (from != to) {
            uint64_t *slot = slot_of(table, from);
            *slot = (*slot >> 32 << 32) | (uint64_t)(to + 1);
            memcpy(octets_of(table, to), octets_of(table, from), (size_t)table->stride);
            table->numbers[to] = table->numbers[from];
            table->numbers[from] = REMOVED;
            for (Walk *walk = table->walks; walk; walk = walk->next) {
                if (to <= walk->entry && walk->entry <= from)
                    walk->entry = to;
                if (to <= walk->end && walk->end <= from)
                    walk->end = to;
            }
        }
        table->to = to + 1;
    }
    table->changes++; /* iterators know entries by number */
    if (table->from == table->used) {
        table->closing = 0;
        table->used = table->to;
        for (Walk *walk = table->walks; walk; walk = walk->next)
            if (walk->end > table->used)
                walk->end = table->used;
        if (table->capacity > 2 * table->live + 64)
            give_back(table);
    }
}

/* Make room for some more entries, whose keys have at most `size` octets. */
static int reserve(Table *table, Py_ssize_t more, Py_ssize_t size) {
    Py_ssize_t stride = table->stride, needed = table->used + more;
    if (needed > (Py_ssize_t)MAX_ENTRIES)
        goto full;
    while (stride <= size)
        stride = stride < 6 ? 6 : stride < 10 ? 10 : stride < 18 ? 18 : stride < 22 ? 22 : MAX_KEY + 1;
    if (needed > table->capacity && table->used - table->live > table->used / 4)
        begin_closing(table);
    if (stride != table->stride && widen(table, stride))
        goto full;
    if (needed > table->capacity) {
        Py_ssize_t capacity = table->capacity + table->capacity / 4 + 8;
        if (resize(table, needed > capacity ? needed : capacity))
            goto full;
    }
    size_t slots = table->slots ? table->slots : 8;
    while ((size_t)(table->live + more) * 4 > slots * 3)
        slots *= 2;
    if (slots != table->slots && begin_index(table, slots))
        goto full;
    return 0;
full:
    PyErr_NoMemory();
    return -1;
}

/* Go on with what is done in steps, after a change of some keys. */
static void tidy(Table *table, Py_ssize_t changed) {
    if (table->used - table->live > table->live + 64)
        begin_closing(table);
    else if (!table->closing && table->capacity > 4 * table->live + 1024)
        give_back(table);
    move_slots(table, (size_t)changed * WORK);
    close_gaps(table, changed * WORK);
}

/* ------------------------------------------------------------------ values */

static inline size_t value_home(Table *table, PyObject *object) {
    uint64_t address = (uint64_t)(uintptr_t)object >> 4;
    return (size_t)((address * 0x9E3779B97F4A7C15u) >> 32) & (table->value_slots - 1);
}

/* Return the slot of a value, or the free one where it belongs. */
static size_t value_slot(Table *table, PyObject *object) {
    size_t at = value_home(table, object);
    while (table->value_index[at] != REMOVED && table->values[table->value_index[at]].object != object)
        at = (at + 1) & (table->value_slots - 1);
    return at;
}

static uint32_t number_of(Table *table, PyObject *object) {
    return table->value_slots ? table->value_index[value_slot(table, object)] : REMOVED;
}

static void set_value_index(Table *table, uint32_t *index, size_t slots) {
    memset(index, 0xFF, slots * sizeof(uint32_t));
    PyMem_Free(table->value_index);
    table->value_index = index;
    table->value_slots = slots;
    for (uint32_t number = 0; number < table->values_used; number++)
        if (table->values[number].object)
            index[value_slot(table, table->values[number].object)] = number;
}

/* Make room for some more values. */
static int reserve_values(Table *table, Py_ssize_t more) {
    uint32_t in_use = table->values_used - table->values_free;
    if (more > (Py_ssize_t)(END - 1) - in_use)
        goto full;
    uint32_t needed = in_use + (uint32_t)more;
    if (needed > table->values_capacity) {
        uint32_t capacity = table->values_capacity + table->values_capacity / 2 + 4;
        capacity = needed > capacity ? needed : capacity;
        Value *values = PyMem_Realloc(table->values, capacity * sizeof(Value));
        if (!values)
            goto full;
        table->values = values;
        table->values_capacity = capacity;
    }
    size_t slots = table->value_slots ? table->value_slots : 8;
    while ((size_t)needed * 3 > slots * 2)
        slots *= 2;
    if (slots != table->value_slots) {
        uint32_t *index = PyMem_Malloc(slots * sizeof(uint32_t));
        if (!index)
            goto full;
        set_value_index(table, index, slots);
    }
    return 0;
full:
    PyErr_NoMemory();
    return -1;
}

/* Give memory back after most values went: the others get new numbers. A failure changes nothing. */
static void shrink_values(Table *table) {
    uint32_t in_use = table->values_used - table->values_free, to = 0;
    size_t slots = 8;
    while ((size_t)in_use * 3 > slots)
        slots *= 2;
    uint32_t *index = PyMem_Malloc(slots * sizeof(uint32_t));
    uint32_t *numbers = PyMem_Malloc(table->values_used * sizeof(uint32_t));
    if (index && numbers) {
        for (uint32_t from = 0; from < table->values_used; from++)
            if (table->values[from].object) {
                table->values[to] = table->values[from];
                numbers[from] = to++;
            }
        for (Py_ssize_t entry = 0; entry < table->used; entry++)
            if (table->numbers[entry] != REMOVED)
                table->numbers[entry] = numbers[table->numbers[entry]];
        table->values_used = to;
        table->values_free = 0;
        table->free_value = END;
        set_value_index(table, index, slots);
        index = NULL;
        uint32_t capacity = in_use + in_use / 2 + 4;
        Value *values = PyMem_Realloc(table->values, capacity * sizeof(Value));
        if (values) {
            table->values = values;
            table->values_capacity = capacity;
        }
    }
    PyMem_Free(index);
    PyMem_Free(numbers);
}

/* Return the number of a value, which the caller holds from now on; there is room for it. */
static uint32_t hold(Table *table, PyObject *object) {
    size_t slot = value_slot(table, object);
    uint32_t number = table->value_index[slot];
    if (number == REMOVED) {
        number = table->free_value;
        if (number == END)
            number = table->values_used++;
        else {
            table->free_value = table->values[number].next;
            table->values_free--;
        }
        table->values[number] = (Value){Py_NewRef(object), 0, NOT_QUEUED};
        table->value_index[slot] = number;
    }
    table->values[number].uses++;
    return number;
}

static inline void release(Table *table, uint32_t number) {
    Value *value = &table->values[number];
    if (!--value->uses && value->next == NOT_QUEUED) {
        value->next = table->released;
        table->released = number;
    }
}

/* Give up the references to values without keys. Runs any code: the last act of a method. */
static void bury(Table *table) {
    while (table->released != END) {
        uint32_t number = table->released;
        Value *value = &table->values[number];
        table->released = value->next;
        value->next = NOT_QUEUED;
        if (value->uses)
            continue;
        PyObject *object = value->object;
        size_t last = table->value_slots - 1, gap = value_slot(table, object);
#define HOME(other) value_home(table, table->values[other].object)
        FREE_SLOT(table->value_index, last, gap, REMOVED, HOME);
#undef HOME
        value->object = NULL;
        value->next = table->free_value;
        table->free_value = number;
        table->values_free++;
        Py_DECREF(object);
    }
    if (table->values_free > 4096 && table->values_free / 3 > table->values_used / 4)
        shrink_values(table);
}

/* ------------------------------------------------------------------ entries */

/* Add an entry of a key that is new; there is room for it. */
static inline void append(Table *table, Key key, uint32_t number) {
    Py_ssize_t entry = table->used++;
    uint8_t *octets = octets_of(table, entry);
    octets[0] = (uint8_t)key.size;
    memcpy(octets + 1, key.octets, key.size);
    table->numbers[entry] = number;
    table->values[number].uses++;
    put(table->index, table->slots, (uint64_t)key.hash << 32 | (uint32_t)(entry + 1));
    table->live++;
    table->changes++;
}

/* Let removed entries at the end go. A walk does not see the keys that take their places. */
static void trim(Table *table) {
    while (table->used && table->numbers[table->used - 1] == REMOVED)
        table->used--;
    for (Walk *walk = table->walks; walk; walk = walk->next)
        if (walk->end > table->used)
            walk->end = table->used;
    if (table->from > table->used)
        table->from = table->used;
    if (table->to > table->used)
        table->to = table->used;
}

/* Remove an entry whose value has been released. */
static void drop(Table *table, Py_ssize_t entry) {
    remove_slot(table, entry);
    table->numbers[entry] = REMOVED;
    table->live--;
    table->changes++;
    trim(table);
}

/* Remove the entries from `first` on, the last one first. */
static void roll_back(Table *table, Py_ssize_t first) {
    while (table->used > first) {
        release(table, table->numbers[table->used - 1]);
        drop(table, table->used - 1);
    }
}

/* Mark the entry of a key as removed, for `remove_marked`; 0 if it has none, or has been marked. */
static int mark(Table *table, Key *key) {
    Py_ssize_t entry = find(table, *key);
    key->entry = NO_ENTRY;
    if (entry == ABSENT || table->numbers[entry] == REMOVED)
        return 0;
    key->entry = (uint32_t)entry;
    key->number = table->numbers[entry];
    table->numbers[entry] = REMOVED;
    return 1;
}

static void remove_mark(Table *table, Key key) {
    if (key.entry != NO_ENTRY)
        table->numbers[key.entry] = key.number;
}

/* Remove the marked entries of some keys; return how many they are. NULL if there is no memory for this
 * number: then nothing has changed. */
static PyObject *remove_marked(Table *table, const Key *keys, Py_ssize_t count, Py_ssize_t marked) {
    PyObject *result = PyLong_FromSsize_t(marked);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (!result) {
            remove_mark(table, keys[at]);
        } else if (keys[at].entry != NO_ENTRY) {
            remove_slot(table, keys[at].entry);
            release(table, keys[at].number);
        }
    }
    if (result && marked) {
        table->live -= marked;
        table->changes++;
        trim(table);
        tidy(table, marked);
        bury(table);
    }
    return result;
}

static void set_number(Table *table, Py_ssize_t entry, uint32_t number) {
    uint32_t before = table->numbers[entry];
    table->numbers[entry] = number;
    table->values[number].uses++;
    release(table, before);
}

/* Describe a key; -1 and TypeError or ValueError if it is invalid. */
static inline int as_key(PyObject *object, Key *key) {
    if (!PyBytes_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a key is bytes, not %.100s", Py_TYPE(object)->tp_name);
        return -1;
    }
    if (PyBytes_GET_SIZE(object) > MAX_KEY) {
        PyErr_Format(PyExc_ValueError, "a key has at most %d octets", MAX_KEY);
        return -1;
    }
    key->octets = (const uint8_t *)PyBytes_AS_STRING(object);
    key->size = (uint32_t)PyBytes_GET_SIZE(object);
    key->hash = hash_of(key->octets, key->size);
    return 0;
}

/* Describe all keys of a sequence; the caller frees them. NULL with an exception. */
static Key *as_keys(PyObject *sequence, Py_ssize_t *longest) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    Key *keys = PyMem_Malloc(((size_t)count + 1) * sizeof(Key));
    if (!keys)
        return (Key *)PyErr_NoMemory();
    *longest = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        if (as_key(PySequence_Fast_GET_ITEM(sequence, at), &keys[at])) {
            PyMem_Free(keys);
            return NULL;
        }
        if (keys[at].size > *longest)
            *longest = keys[at].size;
    }
    return keys;
}

static inline void prefetch_key(Table *table, const Key *keys, Py_ssize_t at, Py_ssize_t count) {
    if (at + 8 < count)
        prefetch(table, keys[at + 8].hash);
}

static PyObject *key_object(Table *table, Py_ssize_t entry) {
    const uint8_t *octets = octets_of(table, entry);
    return PyBytes_FromStringAndSize((const char *)octets + 1, octets[0]);
}

static inline PyObject *value_object(Table *table, Py_ssize_t entry) {
    return table->values[table->numbers[entry]].object;
}

/* Return whether a method has its number of arguments; else with TypeError. */
static int is_call(const char *name, Py_ssize_t given, Py_ssize_t least, Py_ssize_t most) {
    if (given >= least && given <= most)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd to %zd arguments, not %zd", name, least, most, given);
    return 0;
}

/* ------------------------------------------------------------------ methods of a mapping */

static Py_ssize_t length(Table *table) { return table->live; }

static int contains(Table *table, PyObject *object) {
    Key key;
    return as_key(object, &key) ? -1 : find(table, key) != ABSENT;
}

static PyObject *subscript(Table *table, PyObject *object) {
    Key key;
    if (as_key(object, &key))
        return NULL;
    Py_ssize_t entry = find(table, key);
    if (entry == ABSENT) {
        PyErr_SetObject(PyExc_KeyError, object);
        return NULL;
    }
    return Py_NewRef(value_object(table, entry));
}

static int assign(Table *table, PyObject *object, PyObject *value) {
    Key key;
    if (as_key(object, &key))
        return -1;
    Py_ssize_t entry = find(table, key);
    if (!value) {
        if (entry == ABSENT) {
            PyErr_SetObject(PyExc_KeyError, object);
            return -1;
        }
        release(table, table->numbers[entry]);
        drop(table, entry);
        tidy(table, 1);
    } else {
        if (reserve_values(table, 1) || (entry == ABSENT && reserve(table, 1, key.size)))
            return -1;
        uint32_t number = hold(table, value);
        if (entry == ABSENT)
            append(table, key, number);
        else
            set_number(table, entry, number);
        release(table, number);
        if (entry == ABSENT)
            tidy(table, 1);
    }
    bury(table);
    return 0;
}

static PyObject *get(Table *table, PyObject *const *arguments, Py_ssize_t count) {
    if (!is_call("get", count, 1, 2))
        return NULL;
    Key key;
    if (as_key(arguments[0], &key))
        return NULL;
    Py_ssize_t entry = find(table, key);
    if (entry != ABSENT)
        return Py_NewRef(value_object(table, entry));
    return Py_NewRef(count == 2 ? arguments[1] : Py_None);
}

static PyObject *pop(Table *table, PyObject *const *arguments, Py_ssize_t count) {
    if (!is_call("pop", count, 1, 2))
        return NULL;
    Key key;
    if (as_key(arguments[0], &key))
        return NULL;
    Py_ssize_t entry = find(table, key);
    if (entry == ABSENT) {
        if (count == 2)
            return Py_NewRef(arguments[1]);
        PyErr_SetObject(PyExc_KeyError, arguments[0]);
        return NULL;
    }
    PyObject *value = Py_NewRef(value_object(table, entry));
    release(table, table->numbers[entry]);
    drop(table, entry);
    tidy(table, 1);
    bury(table);
    return value;
}

static PyObject *popitem(Table *table, PyObject *Py_UNUSED(none)) {
    PyObject *item = PyTuple_New(2); /* first: the collector may run here, and with it any code */
    if (!item)
        return NULL;
    Py_ssize_t entry = table->used - 1; /* the last entry is never a removed one */
    PyObject *key = NULL;
    if (!table->live)
        PyErr_SetString(PyExc_KeyError, "popitem(): the table is empty");
    else
        key = key_object(table, entry);
    if (!key) {
        Py_DECREF(item);
        return NULL;
    }
    PyTuple_SET_ITEM(item, 0, key);
    PyTuple_SET_ITEM(item, 1, Py_NewRef(value_object(table, entry)));
    release(table, table->numbers[entry]);
    drop(table, entry);
    tidy(table, 1);
    bury(table);
    return item;
}

static int clear_references(Table *table) {
    Value *values = table->values;
    uint32_t count = table->values_used;
    PyMem_Free(table->keys);
    PyMem_Free(table->numbers);
    PyMem_Free(table->index);
    PyMem_Free(table->before);
    PyMem_Free(table->value_index);
    table->keys = NULL;
    table->numbers = NULL;
    table->index = table->before = NULL;
    table->value_index = NULL;
    table->values = NULL;
    table->used = table->live = table->capacity = 0;
    table->stride = 6;
    table->slots = table->before_slots = table->value_slots = 0;
    table->closing = 0;
    table->values_used = table->values_free = table->values_capacity = 0;
    table->free_value = table->released = END;
    table->changes++;
    for (Walk *walk = table->walks; walk; walk = walk->next)
        walk->entry = walk->end = 0;
    for (uint32_t number = 0; number < count; number++)
        Py_XDECREF(values[number].object);
    PyMem_Free(values);
    return 0;
}

static PyObject *clear(Table *table, PyObject *Py_UNUSED(none)) {
    clear_references(table);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ methods of runs of keys */

static PyObject *isdisjoint(Table *table, PyObject *argument) {
    PyObject *sequence = PySequence_Fast(argument, "the keys are a sequence");
    if (!sequence)
        return NULL;
    Py_ssize_t longest, count = PySequence_Fast_GET_SIZE(sequence);
    Key *keys = as_keys(sequence, &longest);
    int disjoint = 1;
    for (Py_ssize_t at = 0; keys && disjoint && at < count; at++) {
        prefetch_key(table, keys, at, count);
        disjoint = find(table, keys[at]) == ABSENT;
    }
    Py_DECREF(sequence);
    if (!keys)
        return NULL;
    PyMem_Free(keys);
    return PyBool_FromLong(disjoint);
}

static PyObject *insert(Table *table, PyObject *const *arguments, Py_ssize_t given) {
    if (!is_call("insert", given, 2, 2))
        return NULL;
    PyObject *sequence = PySequence_Fast(arguments[0], "the keys are a sequence");
    if (!sequence)
        return NULL;
    Py_ssize_t longest, count = PySequence_Fast_GET_SIZE(sequence), before = table->live;
    Key *keys = as_keys(sequence, &longest);
    PyObject *result = NULL;
    Py_ssize_t more = keys ? count : 0;
    if (table->used + more > table->capacity) /* not for known keys */
        for (Py_ssize_t at = 0; at < count; at++)
            more -= find(table, keys[at]) != ABSENT;
    if (keys && !reserve_values(table, 1) && !reserve(table, more, longest)) {
        uint32_t number = hold(table, arguments[1]);
        Py_ssize_t first = table->used;
        for (Py_ssize_t at = 0; at < count; at++) {
            prefetch_key(table, keys, at, count);
            Py_ssize_t entry = find(table, keys[at]);
            keys[at].entry = (uint32_t)entry;
            if (entry == ABSENT)
                append(table, keys[at], number);
            else
                __builtin_prefetch(&table->numbers[entry]);
        }
        result = PyLong_FromSsize_t(table->live - before);
        if (!result)
            roll_back(table, first);
        for (Py_ssize_t at = 0; result && at < count; at++)
            if (keys[at].entry != NO_ENTRY)
                set_number(table, keys[at].entry, number);
        release(table, number);
        if (table->live > before)
            tidy(table, table->live - before);
        bury(table);
    }
    PyMem_Free(keys);
    Py_DECREF(sequence);
    return result;
}

/* Return the longest prefix of an address family in bits (RFC 4760); -1 with an exception. */
static int max_bits_of(PyObject *afi) {
    long number = PyLong_AsLong(afi);
    if (number == 1)
        return 32;
    if (number == 2)
        return 128;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "AFI %ld has no prefixes", number);
    return -1;
}

/* Return the number of an NLRI field's prefixes; -1 if it is malformed. `most` becomes at least the
 * bits of the longest one. */
static Py_ssize_t count_prefixes(PyObject *object, int max_bits, int *most) {
    const uint8_t *field = (const uint8_t *)PyBytes_AS_STRING(object);
    Py_ssize_t size = PyBytes_GET_SIZE(object), count = 0, at = 0;
    while (at < size) {
        int bits = field[at];
        if (bits > max_bits)
            return -1;
        if (bits > *most)
            *most = bits;
        at += 1 + ((bits + 7) >> 3);
        count++;
    }
    return at == size ? count : -1;
}

/* Copy the first prefix of a field, trailing bits cleared, and describe it as a key. */
static inline Key prefix_key(const uint8_t *field, uint8_t *octets) {
    uint32_t bits = field[0], size = 1 + ((bits + 7) >> 3);
    memcpy(octets, field, size);
    if (bits & 7)
        octets[size - 1] &= (uint8_t)(0xFF << (8 - (bits & 7)));
    return (Key){.octets = octets, .size = size, .hash = hash_of(octets, size)};
}

/* Install the prefixes of a well-formed field; 0 if one of them is known. */
static int install(Table *table, PyObject *object, uint32_t number) {
    const uint8_t *field = (const uint8_t *)PyBytes_AS_STRING(object);
    const uint8_t *end = field + PyBytes_GET_SIZE(object);
    uint8_t octets[8][MAX_PREFIX];
    while (field < end) {
        Key keys[8];
        int count = 0;
        for (; count < 8 && field < end; count++) {
            keys[count] = prefix_key(field, octets[count]);
            prefetch(table, keys[count].hash);
            field += keys[count].size;
        }
        for (int at = 0; at < count; at++) {
            if (find(table, keys[at]) != ABSENT)
                return 0;
            append(table, keys[at], number);
        }
    }
    return 1;
}

static PyObject *insert_fields(Table *table, PyObject *const *arguments, Py_ssize_t given) {
    if (!is_call("insert_fields", given, 3, 3))
        return NULL;
    int most = 0, max_bits = max_bits_of(arguments[2]);
    if (max_bits < 0)
        return NULL;
    PyObject *fields = PySequence_Fast(arguments[0], "the fields are a sequence");
    PyObject *values = fields ? PySequence_Fast(arguments[1], "the values are a sequence") : NULL;
    PyObject *result = NULL;
    if (!values)
        goto end;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fields), total = 0, first = 0;
    if (count != PySequence_Fast_GET_SIZE(values)) {
        PyErr_SetString(PyExc_ValueError, "each field has a value");
        goto end;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *field = PySequence_Fast_GET_ITEM(fields, at);
        if (!PyBytes_Check(field)) {
            PyErr_SetString(PyExc_TypeError, "a field is bytes");
            goto end;
        }
        Py_ssize_t prefixes = count_prefixes(field, max_bits, &most);
        if (prefixes < 0) {
            result = PyLong_FromLong(0);
            goto end;
        }
        total += prefixes;
    }
    result = PyLong_FromSsize_t(total);
    if (!result)
        goto end;
    if (reserve_values(table, count) || reserve(table, total, 1 + ((most + 7) >> 3))) {
        Py_CLEAR(result);
        goto end;
    }
    first = table->used;
    for (Py_ssize_t at = 0; at < count; at++) {
        uint32_t number = hold(table, PySequence_Fast_GET_ITEM(values, at));
        int all_new = install(table, PySequence_Fast_GET_ITEM(fields, at), number);
        release(table, number);
        if (!all_new) {
            roll_back(table, first);
            Py_SETREF(result, PyLong_FromLong(0)); /* which is not allocated */
            break;
        }
    }
    tidy(table, table->used - first);
    bury(table);
end:
    Py_XDECREF(values);
    Py_XDECREF(fields);
    return result;
}

static PyObject *replace(Table *table, PyObject *const *arguments, Py_ssize_t given) {
    if (!is_call("replace", given, 3, 3))
        return NULL;
    PyObject *value = arguments[2];
    PyObject *sequence = PySequence_Fast(arguments[0], "the keys are a sequence");
    if (!sequence)
        return NULL;
    PyObject *result = NULL;
    Py_ssize_t longest, count = PySequence_Fast_GET_SIZE(sequence), at, marked = 0;
    Key *keys = as_keys(sequence, &longest);
    if (!keys || (value != Py_None && reserve_values(table, 1)))
        goto end;
    uint32_t old = number_of(table, arguments[1]);
    for (at = 0; at < count; at++) {
        prefetch_key(table, keys, at, count);
        Py_ssize_t entry = old == REMOVED ? ABSENT : find(table, keys[at]);
        if (entry == ABSENT || (table->numbers[entry] != old && table->numbers[entry] != REMOVED))
            break;
        keys[at].entry = NO_ENTRY; /* named before in this run */
        if (table->numbers[entry] == old) {
            keys[at].entry = (uint32_t)entry;
            keys[at].number = old;
            table->numbers[entry] = REMOVED;
            marked++;
        }
    }
    if (at == count && value == Py_None) {
        result = remove_marked(table, keys, count, marked);
        goto end;
    }
    result = PyLong_FromSsize_t(at == count ? marked : 0);
    if (!result || at < count || !marked) {
        while (at--)
            remove_mark(table, keys[at]);
        goto end;
    }
    uint32_t number = hold(table, value);
    while (at--)
        if (keys[at].entry != NO_ENTRY)
            table->numbers[keys[at].entry] = number;
    table->values[number].uses += (uint32_t)marked;
    release(table, number); /* held above */
    table->values[old].uses -= (uint32_t)marked - 1;
    release(table, old);
    bury(table);
end:
    PyMem_Free(keys);
    Py_DECREF(sequence);
    return result;
}

static PyObject *discard(Table *table, PyObject *argument) {
    PyObject *sequence = PySequence_Fast(argument, "the keys are a sequence");
    if (!sequence)
        return NULL;
    Py_ssize_t longest, count = PySequence_Fast_GET_SIZE(sequence), marked = 0;
    Key *keys = as_keys(sequence, &longest);
    PyObject *result = NULL;
    if (keys) {
        for (Py_ssize_t at = 0; at < count; at++) {
            prefetch_key(table, keys, at, count);
            marked += mark(table, &keys[at]);
        }
        result = remove_marked(table, keys, count, marked);
    }
    PyMem_Free(keys);
    Py_DECREF(sequence);
    return result;
}

static PyObject *discard_fields(Table *table, PyObject *const *arguments, Py_ssize_t given) {
    if (!is_call("discard_fields", given, 2, 2))
        return NULL;
    int most = 0, max_bits = max_bits_of(arguments[1]);
    if (max_bits < 0)
        return NULL;
    PyObject *fields = PySequence_Fast(arguments[0], "the fields are a sequence");
    if (!fields)
        return NULL;
    Py_ssize_t total = 0, marked = 0;
    PyObject *result = NULL;
    Key *keys = NULL;
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(fields); at++) {
        PyObject *object = PySequence_Fast_GET_ITEM(fields, at);
        Py_ssize_t prefixes = PyBytes_Check(object) ? count_prefixes(object, max_bits, &most) : -1;
        if (prefixes < 0) {
            PyErr_SetString(PyExc_ValueError, "no NLRI field");
            goto end;
        }
        total += prefixes;
    }
    /* Of the keys that are found, and the next one. */
    keys = PyMem_Malloc((size_t)((total < table->live ? total : table->live) + 1) * sizeof(Key));
    if (!keys) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(fields); at++) {
        PyObject *object = PySequence_Fast_GET_ITEM(fields, at);
        const uint8_t *field = (const uint8_t *)PyBytes_AS_STRING(object);
        const uint8_t *end_of_field = field + PyBytes_GET_SIZE(object);
        uint8_t octets[MAX_PREFIX];
        while (field < end_of_field) {
            keys[marked] = prefix_key(field, octets);
            field += keys[marked].size;
            marked += mark(table, &keys[marked]);
        }
    }
    result = remove_marked(table, keys, marked, marked);
end:
    PyMem_Free(keys);
    Py_DECREF(fields);
    return result;
}

/* Return the octets of the table and its keys, for sys.getsizeof. */
static PyObject *size_of(Table *table, PyObject *Py_UNUSED(none)) {
    return PyLong_FromSize_t(
        sizeof(Table) + (size_t)table->capacity * ((size_t)table->stride + sizeof(uint32_t)) +
        (table->slots + table->before_slots) * sizeof(uint64_t) + table->values_capacity * sizeof(Value) +
        table->value_slots * sizeof(uint32_t));
}

/* ------------------------------------------------------------------ iterators and walks */

/* What both begin with; `tp_clear` of each gives the table up. */
typedef struct {
    PyObject_HEAD
    Table *table;
} Reader;

static int reader_traverse(Reader *reader, visitproc visit, void *arg) {
    Py_VISIT(reader->table);
    return 0;
}

static void reader_dealloc(Reader *reader) {
    PyObject_GC_UnTrack(reader);
    Py_TYPE(reader)->tp_clear((PyObject *)reader);
    PyObject_GC_Del(reader);
}

typedef struct {
    PyObject_HEAD
    Table *table; /* NULL at the end */
    Py_ssize_t entry;
    uint64_t changes;
    int items;
} Iterator;

static PyTypeObject IteratorType;

static PyObject *iterate(Table *table, int items) {
    Iterator *iterator = PyObject_GC_New(Iterator, &IteratorType);
    if (!iterator)
        return NULL;
    iterator->table = (Table *)Py_NewRef(table);
    iterator->entry = 0;
    iterator->changes = table->changes;
    iterator->items = items;
    PyObject_GC_Track(iterator);
    return (PyObject *)iterator;
}

static PyObject *iterate_keys(Table *table) { return iterate(table, 0); }

static PyObject *iterate_items(Table *table, PyObject *Py_UNUSED(none)) {
    return iterate(table, 1);
}

static PyObject *next_of(Iterator *iterator) {
    Table *table = iterator->table;
    if (!table)
        return NULL;
    if (table->changes != iterator->changes) {
        PyErr_SetString(PyExc_RuntimeError, "the table changed during iteration");
        return NULL;
    }
    while (iterator->entry < table->used && table->numbers[iterator->entry] == REMOVED)
        iterator->entry++;
    if (iterator->entry >= table->used) {
        Py_CLEAR(iterator->table);
        return NULL;
    }
    Py_ssize_t entry = iterator->entry;
    PyObject *key = key_object(table, entry);
    if (!key)
        return NULL;
    if (!iterator->items) {
        iterator->entry++;
        return key;
    }
    PyObject *value = Py_NewRef(value_object(table, entry));
    PyObject *item = PyTuple_New(2); /* last: the collector may run here, and with it any code */
    if (!item) {
        Py_DECREF(key);
        Py_DECREF(value);
        return NULL;
    }
    iterator->entry = entry + 1;
    PyTuple_SET_ITEM(item, 0, key);
    PyTuple_SET_ITEM(item, 1, value);
    return item;
}

static int end_iterator(Iterator *iterator) {
    Py_CLEAR(iterator->table);
    return 0;
}

static PyTypeObject IteratorType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "speaker.rib.prefix_table.native.Iterator",
    .tp_basicsize = sizeof(Iterator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)reader_traverse,
    .tp_clear = (inquiry)end_iterator,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)next_of,
};

/* ------------------------------------------------------------------ walks */

static PyTypeObject WalkType;

static PyObject *walk_of(Table *table, PyObject *argument) {
    Py_ssize_t size = PyLong_AsSsize_t(argument);
    if (size < 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a list has at least one key");
        return NULL;
    }
    Walk *walk = PyObject_GC_New(Walk, &WalkType);
    if (!walk)
        return NULL;
    walk->table = (Table *)Py_NewRef(table);
    walk->entry = 0;
    walk->end = table->used;
    walk->size = size;
    walk->link = &table->walks;
    walk->next = table->walks;
    if (walk->next)
        walk->next->link = &walk->next;
    table->walks = walk;
    PyObject_GC_Track(walk);
    return (PyObject *)walk;
}

static int end_walk(Walk *walk) {
    if (walk->table) {
        *walk->link = walk->next;
        if (walk->next)
            walk->next->link = walk->link;
        Py_CLEAR(walk->table);
    }
    return 0;
}

static PyObject *next_keys(Walk *walk) {
    PyObject *keys = PyList_New(0); /* first: the collector may run here, and with it any code */
    if (!keys || !walk->table) {
        Py_XDECREF(keys);
        return NULL;
    }
    Table *table = walk->table;
    Py_ssize_t entry = walk->entry;
    for (; entry < walk->end && PyList_GET_SIZE(keys) < walk->size; entry++) {
        if (table->numbers[entry] == REMOVED)
            continue;
        PyObject *key = key_object(table, entry);
        int failed = !key || PyList_Append(keys, key);
        Py_XDECREF(key);
        if (failed) {
            Py_DECREF(keys);
            return NULL;
        }
    }
    walk->entry = entry;
    if (!PyList_GET_SIZE(keys)) {
        end_walk(walk);
        Py_CLEAR(keys);
    }
    return keys;
}

static PyTypeObject WalkType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "speaker.rib.prefix_table.native.Walk",
    .tp_basicsize = sizeof(Walk),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)reader_traverse,
    .tp_clear = (inquiry)end_walk,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)next_keys,
};

/* ------------------------------------------------------------------ the type and the module */

static PyObject *new_table(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    if (PyTuple_GET_SIZE(arguments) || (names && PyDict_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "a prefix table begins empty");
        return NULL;
    }
    Table *table = (Table *)type->tp_alloc(type, 0);
    if (table) {
        table->stride = 6;
        table->free_value = table->released = END;
    }
    return (PyObject *)table;
}

static int traverse(Table *table, visitproc visit, void *arg) {
    for (uint32_t number = 0; number < table->values_used; number++)
        Py_VISIT(table->values[number].object);
    return 0;
}

static void dealloc(Table *table) {
    PyObject_GC_UnTrack(table);
    clear_references(table);
    Py_TYPE(table)->tp_free((PyObject *)table);
}

static PyMethodDef methods[] = {
    {"clear", (PyCFunction)clear, METH_NOARGS, "Remove all keys."},
    {"discard", (PyCFunction)discard, METH_O, "Remove keys; return how many were there."},
    {"discard_fields", (PyCFunction)(void (*)(void))discard_fields, METH_FASTCALL, "Remove the prefixes of NLRI fields; return how many were there."},
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, "Return the value of a key, or a default."},
    {"insert", (PyCFunction)(void (*)(void))insert, METH_FASTCALL, "Set the value of keys; return how many are new."},
    {"insert_fields", (PyCFunction)(void (*)(void))insert_fields, METH_FASTCALL, "Set the value of each NLRI field's prefixes if all are new."},
    {"isdisjoint", (PyCFunction)isdisjoint, METH_O, "Return whether none of some keys is in the table."},
    {"items", (PyCFunction)iterate_items, METH_NOARGS, "Iterate over keys and values."},
    {"pop", (PyCFunction)(void (*)(void))pop, METH_FASTCALL, "Remove a key, and return its value or a default."},
    {"popitem", (PyCFunction)popitem, METH_NOARGS, "Remove the last key; return it and its value."},
    {"replace", (PyCFunction)(void (*)(void))replace, METH_FASTCALL, "Replace the one value of all of some keys, or remove them."},
    {"walk", (PyCFunction)walk_of, METH_O, "Iterate over lists of keys, while the table changes."},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL},
    {"__sizeof__", (PyCFunction)size_of, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMappingMethods as_mapping = {
    .mp_length = (lenfunc)length,
    .mp_subscript = (binaryfunc)subscript,
    .mp_ass_subscript = (objobjargproc)assign,
};

static PySequenceMethods as_sequence = {.sq_contains = (objobjproc)contains};

static PyTypeObject TableType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "speaker.rib.prefix_table.native.PrefixTable",
    .tp_doc = "Octets to references, in the order of insertion.",
    .tp_basicsize = sizeof(Table),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = new_table,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear_references,
    .tp_dealloc = (destructor)dealloc,
    .tp_as_mapping = &as_mapping,
    .tp_as_sequence = &as_sequence,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_iter = (getiterfunc)iterate_keys,
    .tp_methods = methods,
};

static int execute(PyObject *module) {
    /* Once: a module that is imported again has the types of before, and their tables. */
    if (!(seed[0] | seed[1]) && getentropy(seed, sizeof seed)) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    return PyType_Ready(&IteratorType) || PyType_Ready(&WalkType) || PyModule_AddType(module, &TableType) ||
                   PyModule_AddIntConstant(module, "SOURCE", SOURCE)
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "native",
    .m_doc = "The prefix table in C; its interface is that of speaker.rib.prefix_table.dictionary.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_native(void) { return PyModuleDef_Init(&definition); }
