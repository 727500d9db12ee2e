/* What compiled loops need beside themselves: the memory of the arrays that they make, as numba's own runtime has it.

   An owner counts who uses its data. The loops ask for owners and give them up; an array that is returned is copied
   into one of numpy's by `fairway_take`, which gives the owner up. No header is needed, so that any C compiler will do. */

typedef unsigned long size;

void *malloc(size);
void free(void *);
void *memcpy(void *, const void *, size);

typedef void (*ending)(void *, size, void *);
typedef struct {
    size count;
    ending end;
    void *end_info;
    void *data;
    size length;
    void *allocator;
} owner;

void *fairway_ndarray = 0;

void fairway_open(void *ndarray) { fairway_ndarray = ndarray; }

void *NRT_Allocate(size length) { return malloc(length ? length : 1); }

void NRT_Free(void *memory) { free(memory); }

static owner *owner_of(void *memory, void *data, size length, ending end) {
    owner *made = memory;
    if (made) {
        made->count = 1;
        made->end = end;
        made->end_info = 0;
        made->data = data;
        made->length = length;
        made->allocator = 0;
    }
    return made;
}

void *NRT_MemInfo_alloc_aligned(size length, unsigned alignment) {
    size step = alignment ? alignment : 16;
    char *memory = malloc(sizeof(owner) + length + 2 * step);
    size data = (size)(memory + sizeof(owner)) + step - 1;
    return memory ? owner_of(memory, (void *)(data - data % step), length, 0) : 0;
}

void *NRT_MemInfo_alloc(size length) { return NRT_MemInfo_alloc_aligned(length, 16); }

void *NRT_MemInfo_alloc_safe_aligned(size length, unsigned alignment) { return NRT_MemInfo_alloc_aligned(length, alignment); }

void *NRT_MemInfo_alloc_safe(size length) { return NRT_MemInfo_alloc_aligned(length, 16); }

/* Lists, whose data moves as they grow. */
static void end_of_list(void *data, size length, void *info) {
    (void)length, (void)info;
    free(data);
}

void *NRT_MemInfo_new_varsize(size length) {
    void *data = malloc(length);
    return data ? owner_of(malloc(sizeof(owner)), data, length, end_of_list) : 0;
}

static void end_of_listed(void *data, size length, void *info) {
    if (info) {
        ((ending)info)(data, length, 0);
    }
    free(data);
}

void *NRT_MemInfo_new_varsize_dtor(size length, ending end) {
    owner *made = NRT_MemInfo_new_varsize(length);
    if (made) {
        made->end = end_of_listed;
        made->end_info = (void *)end;
    }
    return made;
}

void *NRT_MemInfo_varsize_realloc(owner *of, size length) {
    void *data = malloc(length);
    if (data) {
        memcpy(data, of->data, of->length < length ? of->length : length);
        free(of->data);
        of->data = data;
        of->length = length;
    }
    return data;
}

void *NRT_MemInfo_varsize_allocate(owner *of, size length) {
    void *data = malloc(length);
    if (data) {
        of->data = data;
        of->length = length;
    }
    return data;
}

void NRT_MemInfo_varsize_free(owner *of, void *data) {
    free(data);
    if (data == of->data) {
        of->data = 0;
    }
}

void *NRT_MemInfo_data_fast(owner *of) { return of->data; }

void NRT_MemInfo_call_dtor(owner *of) {
    if (of->end) {
        of->end(of->data, of->length, of->end_info);
    }
    free(of);
}

/* The same numbers in another shape: only of arrays in row-major order, as others would have to be copied. */
int numba_attempt_nocopy_reshape(
    long count, const long *lengths, const long *strides, long new_count, const long *new_lengths, long *new_strides,
    long item, int column_major) {
    long step = item;
    for (long k = count - 1; k >= 0; k--) {
        if (lengths[k] != 1 && strides[k] != step) {
            return 0;
        }
        step *= lengths[k];
    }
    step = item;
    for (long k = new_count - 1; k >= 0; k--) {
        new_strides[k] = step;
        step *= new_lengths[k];
    }
    return !column_major;
}

void fairway_take(owner *of, const void *data, void *array, size length) {
    memcpy(*(void **)((char *)array + 16), data, length);
    if (of && __atomic_sub_fetch(&of->count, 1, __ATOMIC_ACQ_REL) == 0) {
        NRT_MemInfo_call_dtor(of);
    }
}
