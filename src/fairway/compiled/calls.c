/* Calls from Python into compiled loops: takes arguments apart, calls the loop, and makes what Python gets.

   A loop takes words of eight bytes, one for each number and each array, and writes its answer in words, too; `ahead`
   makes it so, `library` says what is what. Functions of Python are handed over as a table of its stable interface, so
   that neither headers nor a library to link with are needed, and one file serves all versions. */

typedef long long word;
typedef long size;
typedef struct object object;

#define MOST_WORDS 96
#define RAISED -1
#define WRONG_ARGUMENTS -2

/* In the order of `library.PYTHON`. */
static struct {
    double (*float_as_double)(object *);
    word (*long_as_word)(object *);
    int (*is_true)(object *);
    size (*tuple_size)(object *);
    object *(*tuple_get)(object *, size);
    object *(*tuple_new)(size);
    int (*tuple_set)(object *, size, object *);
    object *(*float_from_double)(double);
    object *(*long_from_word)(word);
    object *(*bool_from_long)(long);
    object *(*call)(object *, ...);
    object *(*error)(void);
    int (*error_matches)(object *);
    void (*error_clear)(void);
    void *(*save_thread)(void);
    void (*restore_thread)(void *);
    void *(*capsule_pointer)(object *, const char *);
    object *(*capsule_new)(void *, const char *, void *);
    object *(*function_new)(void *, object *, object *);
    void (*increase)(object *);
    void (*decrease)(object *);
} python;

static object *none, *type_error, *empty;

void *malloc(unsigned long);
void fairway_take(void *owner, const void *data, void *array, unsigned long length);

/* `takes` has a letter for each parameter: `d` a float, `q` a whole number, `?` a truth value, `a` an array; a named tuple of n
   arrays is `t` and the character '0' + n. `returns` has such letters for numbers; an array is the number of its dimensions and the
   letter of what is in it. */
typedef struct {
    struct {
        const char *name;
        void *function;
        int flags;
        const char *documentation;
    } definition;
    word (*loop)(const word *, word *);
    const char *takes, *returns;
    object *types;     /* of the arrays that it returns, in order */
    object *otherwise; /* does what is not done here */
    int parameters, results, is_tuple, releases_lock;
} known;

void fairway_begin(const void *functions, object *none_, object *type_error_, object *empty_) {
    __builtin_memcpy(&python, functions, sizeof python);
    none = none_, type_error = type_error_, empty = empty_;
}

/* Let Python do it: bring arrays into form, take arguments by name, or raise what the loop has met. */
static object *otherwise(const known *of, word code, word failure, object *const *given, size count, object *names) {
    size named = names ? python.tuple_size(names) : 0;
    object *arguments = python.tuple_new(count + named), *answer = 0;
    object *coded = python.long_from_word(code), *failed = python.long_from_word(failure);
    if (arguments && coded && failed) {
        for (size at = 0; at < count + named; at++) {
            python.increase(given[at]);
            python.tuple_set(arguments, at, given[at]);
        }
        answer = python.call(of->otherwise, coded, failed, arguments, names ? names : none, (object *)0);
    }
    object *made[] = {arguments, coded, failed};
    for (int at = 0; at < 3; at++) {
        if (made[at]) {
            python.decrease(made[at]);
        }
    }
    return answer;
}

/* An array of numpy's with what a loop has returned: its owner, where it is, and its lengths. */
static object *array_of(const char *kind, const word *answer, object *type) {
    int dimensions = kind[0] - '0';
    unsigned long length = kind[1] == '?' ? 1 : kind[1] == 'h' ? 2 : 8;
    object *shape = python.tuple_new(dimensions), *array = 0;
    for (int at = 0; shape && at < dimensions; at++) {
        length *= answer[2 + at];
        object *number = python.long_from_word(answer[2 + at]);
        if (!number) {
            python.decrease(shape);
            shape = 0;
        } else {
            python.tuple_set(shape, at, number);
        }
    }
    if (shape) {
        array = python.call(empty, shape, type, (object *)0);
        python.decrease(shape);
    }
    if (array) {
        fairway_take((void *)answer[0], (const void *)answer[1], array, length);
    }
    return array;
}

static object *answered(const known *of, const word *answer) {
    object *all = of->is_tuple ? python.tuple_new(of->results) : 0, *one = 0;
    const char *kind = of->returns;
    int arrays = 0;
    if (of->is_tuple && !all) {
        return 0;
    }
    for (int at = 0; at < of->results; at++) {
        double number;
        switch (*kind) {
        case 'd':
            __builtin_memcpy(&number, answer++, sizeof number);
            one = python.float_from_double(number);
            break;
        case 'q':
            one = python.long_from_word(*answer++);
            break;
        case '?':
            one = python.bool_from_long(*answer++ != 0);
            break;
        default:
            one = array_of(kind, answer, python.tuple_get(of->types, arrays++));
            answer += 2 + *kind++ - '0';
        }
        kind++;
        if (!one) {
            if (all) {
                python.decrease(all);
            }
            return 0;
        }
        if (all) {
            python.tuple_set(all, at, one);
        }
    }
    if (!of->results) {
        python.increase(none);
        return none;
    }
    return all ? all : one;
}

static object *called(object *self, object *const *given, size count, object *names) {
    const known *of = python.capsule_pointer(self, 0);
    word words[MOST_WORDS], answer[MOST_WORDS], *next = words;
    if (count != of->parameters || (names && python.tuple_size(names))) {
        return otherwise(of, WRONG_ARGUMENTS, 0, given, count, names);
    }
    const char *kind = of->takes;
    for (size at = 0; at < count; at++, kind++) {
        object *value = given[at];
        double number;
        switch (*kind) {
        case 'a':
            *next++ = (word)value;
            continue;
        case 'd':
            number = python.float_as_double(value);
            __builtin_memcpy(next, &number, sizeof number);
            if (number != -1.0) {
                next++;
                continue;
            }
            break;
        case 'q':
            if ((*next = python.long_as_word(value)) != -1) {
                next++;
                continue;
            }
            break;
        case '?':
            if ((*next = python.is_true(value)) >= 0) {
                next++;
                continue;
            }
            break;
        default: {
            int members = *++kind - '0';
            for (int member = 0; member < members; member++) {
                *next = (word)python.tuple_get(value, member);
                if (!*next++) {
                    python.error_clear();
                    return otherwise(of, WRONG_ARGUMENTS, 0, given, count, 0);
                }
            }
            continue;
        }
        }
        if (python.error()) {
            if (!python.error_matches(type_error)) {
                return 0;
            }
            python.error_clear();
            return otherwise(of, WRONG_ARGUMENTS, 0, given, count, 0);
        }
        next++;
    }
    word code;
    if (of->releases_lock) {
        void *thread = python.save_thread();
        code = of->loop(words, answer);
        python.restore_thread(thread);
    } else {
        code = of->loop(words, answer);
    }
    return code ? otherwise(of, code, answer[0], given, count, 0) : answered(of, answer + 1);
}

/* A function of Python's that calls a loop; it is there for good, and so are the texts that it is given. */
object *fairway_bind(
    const char *name, const char *documentation, object *module, void *loop, const char *takes, int parameters, const char *returns,
    int results, int is_tuple, int releases_lock, object *types, object *otherwise_) {
    known *of = malloc(sizeof *of);
    if (!of) {
        return 0;
    }
    of->definition.name = name;
    of->definition.function = (void *)called;
    of->definition.flags = 0x0080 | 0x0002; /* METH_FASTCALL and METH_KEYWORDS */
    of->definition.documentation = documentation;
    of->loop = (word (*)(const word *, word *))loop;
    of->takes = takes, of->returns = returns;
    of->parameters = parameters, of->results = results;
    of->is_tuple = is_tuple, of->releases_lock = releases_lock;
    of->types = types, of->otherwise = otherwise_;
    python.increase(types);
    python.increase(otherwise_);
    object *self = python.capsule_new(of, 0, 0);
    return self ? python.function_new(of, self, module) : 0;
}
