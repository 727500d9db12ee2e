/* A library with the interface of NVML, as far as Fairway asks it, for machines without a GPU.
 *
 * What there is stands in the file that NVML_STAND_IN names, which is read again for every question, so that a GPU can
 * be lost while a program looks at it. One line per thing, fields as key=value separated by '|':
 *
 *     driver|version=580.65.06
 *     gpu|name=NVIDIA A100-SXM4-40GB|uuid=GPU-a|memory=40960|used=512|mig=1|util=35|power=98500|links=1,2
 *     mig|name=NVIDIA A100-SXM4-40GB MIG 3g.20gb|uuid=MIG-b|slices=3|memory=20096
 *
 * A `mig` line is an instance of the GPU above it. A field that is left out is "not supported". `lost=1` is a GPU that
 * has fallen off the bus, `reset=1` one that has to be reset, `xid=79` an error that is reported once, `rows=1` a row of
 * memory that could not be remapped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, NO_DRIVER = 9, TIMEOUT = 10,
       LOST = 15, RESET = 16 };
enum { MOST = 64, WIDE = 512 };

typedef struct { char text[WIDE]; int is_mig; int parent; } Thing;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Load;
typedef struct { unsigned int sms, engines, decoders, encoders, jpeg, ofa, slices, compute; unsigned long long mb; } Shape;
typedef struct { void *device; unsigned long long type, data; unsigned int instance, compute; } Event;

static Thing things[MOST];
static int count;
static int heard[MOST];
static char driver[80];

static int load(void) {
    const char *path = getenv("NVML_STAND_IN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[WIDE];
    int parent = -1;
    count = 0;
    driver[0] = 0;
    if (!file) return 0;
    while (count < MOST && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "driver|version=", 15)) snprintf(driver, sizeof driver, "%.79s", line + 15);
        if (strncmp(line, "gpu|", 4) && strncmp(line, "mig|", 4)) continue;
        things[count].is_mig = line[0] == 'm';
        if (!things[count].is_mig) parent = count;
        things[count].parent = parent;
        snprintf(things[count].text, WIDE, "%.500s|", line);
        count++;
    }
    fclose(file);
    return 1;
}

static int field(int which, const char *key, char *into, size_t size) {
    char wanted[64];
    const char *at, *end;
    snprintf(wanted, sizeof wanted, "|%s=", key);
    at = strstr(things[which].text, wanted);
    if (!at) return 0;
    at += strlen(wanted);
    end = strchr(at, '|');
    snprintf(into, size, "%.*s", (int)(end - at), at);
    return 1;
}

static int number(int which, const char *key, unsigned long long *into) {
    char text[64];
    if (!field(which, key, text, sizeof text)) return 0;
    *into = strtoull(text, NULL, 10);
    return 1;
}

/* A handle is the number of the thing, counted from 1. */
static int of(void *handle, int *which) {
    unsigned long long said;
    load();
    *which = (int)(size_t)handle - 1;
    if (*which < 0 || *which >= count) return LOST;
    if (number(things[*which].parent, "lost", &said)) return LOST;
    if (number(things[*which].parent, "reset", &said)) return RESET;
    return SUCCESS;
}

static int asked(void *handle, const char *key, unsigned long long *into) {
    int which, state = of(handle, &which);
    if (state) return state;
    return number(which, key, into) ? SUCCESS : NOT_SUPPORTED;
}

static int words(void *handle, const char *key, char *into, unsigned int size) {
    int which, state = of(handle, &which);
    if (state) return state;
    return field(which, key, into, size) ? SUCCESS : NOT_SUPPORTED;
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return load() ? SUCCESS : NO_DRIVER; }
int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case NO_DRIVER: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case LOST: return "GPU is lost";
    case RESET: return "GPU requires restart";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *into, unsigned int size) {
    load();
    if (!driver[0]) return NOT_SUPPORTED;
    snprintf(into, size, "%s", driver);
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *into) {
    int which;
    load();
    *into = 0;
    for (which = 0; which < count; which++) *into += !things[which].is_mig;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **into) {
    unsigned int seen = 0;
    int which;
    load();
    for (which = 0; which < count; which++)
        if (!things[which].is_mig && seen++ == index) {
            *into = (void *)(size_t)(which + 1);
            return of(*into, &which);
        }
    return INVALID;
}

int nvmlDeviceGetName(void *handle, char *into, unsigned int size) { return words(handle, "name", into, size); }
int nvmlDeviceGetUUID(void *handle, char *into, unsigned int size) { return words(handle, "uuid", into, size); }

int nvmlDeviceGetMemoryInfo(void *handle, Memory *into) {
    unsigned long long total, used = 0;
    int state = asked(handle, "memory", &total);
    if (state) return state;
    asked(handle, "used", &used);
    into->total = total << 20;
    into->used = used << 20;
    into->free = into->total - into->used;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *now, unsigned int *pending) {
    unsigned long long value;
    int state = asked(handle, "mig", &value);
    if (!state) *now = *pending = (unsigned int)value;
    return state;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *into) {
    int which, state = of(handle, &which);
    *into = 7;
    return state;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int index, void **into) {
    unsigned int seen = 0;
    int parent, which, state = of(handle, &parent);
    if (state) return state;
    for (which = 0; which < count; which++)
        if (things[which].is_mig && things[which].parent == parent && seen++ == index) {
            *into = (void *)(size_t)(which + 1);
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetAttributes_v2(void *handle, Shape *into) {
    unsigned long long slices, memory = 0;
    int state = asked(handle, "slices", &slices);
    if (state) return state;
    asked(handle, "memory", &memory);
    memset(into, 0, sizeof *into);
    into->slices = into->compute = (unsigned int)slices;
    into->mb = memory;
    return SUCCESS;
}

int nvmlDeviceGetComputeMode(void *handle, unsigned int *into) {
    unsigned long long value;
    int state = asked(handle, "mode", &value);
    if (!state) *into = (unsigned int)value;
    return state;
}

int nvmlDeviceGetUtilizationRates(void *handle, Load *into) {
    unsigned long long value;
    int state = asked(handle, "util", &value);
    if (!state) { into->gpu = (unsigned int)value; into->memory = 0; }
    return state;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *into) {
    unsigned long long value;
    int state = asked(handle, "power", &value);
    if (!state) *into = (unsigned int)value;
    return state;
}

int nvmlDeviceGetTemperature(void *handle, unsigned int sensor, unsigned int *into) {
    unsigned long long value;
    int state = asked(handle, "temperature", &value);
    (void)sensor;
    if (!state) *into = (unsigned int)value;
    return state;
}

int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *into) {
    (void)counter;
    return kind == 1 ? asked(handle, "ecc", into) : NOT_SUPPORTED;
}

int nvmlDeviceGetRemappedRows(void *handle, unsigned int *mended, unsigned int *lost, unsigned int *pending,
                              unsigned int *failed) {
    unsigned long long value;
    int state = asked(handle, "rows", &value);
    if (!state) { *mended = *lost = *pending = 0; *failed = (unsigned int)value; }
    return state;
}

int nvmlDeviceGetP2PStatus(void *one, void *other, int kind, int *into) {
    char text[64];
    int which, peer, index, position = 0, state = of(one, &which);
    char *next;
    if (state || (state = of(other, &peer))) return state;
    *into = 5;
    for (index = 0; index < peer; index++) position += !things[index].is_mig;
    if (kind != 2 || !field(which, "links", text, sizeof text)) return SUCCESS;
    for (next = strtok(text, ","); next; next = strtok(NULL, ","))
        if (atoi(next) == position) *into = 0;
    return SUCCESS;
}

int nvmlEventSetCreate(void **into) { *into = (void *)1; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceRegisterEvents(void *handle, unsigned long long kinds, void *set) {
    int which;
    (void)kinds; (void)set;
    return of(handle, &which);
}

int nvmlEventSetWait_v2(void *set, Event *into, unsigned int milliseconds) {
    unsigned long long value;
    int which;
    (void)set; (void)milliseconds;
    load();
    for (which = 0; which < count; which++)
        if (!heard[which] && number(which, "xid", &value)) {
            heard[which] = 1;
            memset(into, 0, sizeof *into);
            into->device = (void *)(size_t)(which + 1);
            into->type = 8;
            into->data = value;
            return SUCCESS;
        }
    return TIMEOUT;
}
