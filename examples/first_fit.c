/* First fit in a process of its own, in C without a library.
 *
 * Build: cc -O2 -o first_fit examples/first_fit.c
 * Run:   subak simulate W --scheduler pipe:./first_fit
 *
 * It knows no JSON: it looks for the keys that it needs, in the order in which Subak writes them. Constraints of jobs,
 * and machines that leave or come, are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESOURCES = 16 };
typedef struct { long amount[RESOURCES]; } Amounts;

static Amounts *machine, *job; /* what is free on each machine; what each job asks for; in units */
static long machines, jobs, resources;
static long *waiting, first, last; /* jobs, the first to arrive first */

static void fail(const char *what) {
    fprintf(stderr, "first_fit: %s\n", what);
    exit(1);
}

static void *grown(void *table, long rows, size_t size) {
    table = realloc(table, (size_t)rows * size);
    if (table == NULL) fail("out of memory");
    return table;
}

/* Return what stands behind a key, from a place on. */
static char *behind(char *place, const char *key) {
    char *found = strstr(place, key);
    if (found == NULL) fail(key);
    return found + strlen(key);
}

/* Read "[3,4]" and return how many amounts there were. */
static long read_amounts(char *place, Amounts *found) {
    long count = 0;
    while (*place == '[' || *place == ',') {
        if (count == RESOURCES) fail("too many resources");
        found->amount[count++] = strtol(place + 1, &place, 10);
    }
    return count;
}

static void begin(char *event) {
    char *end = behind(event, "\"storage_resources\"");
    while ((event = strstr(event, "\"capacity\":")) != NULL && event < end) {
        machine = grown(machine, machines + 1, sizeof *machine);
        event = behind(event, "\"capacity\":");
        resources = read_amounts(event, &machine[machines++]);
    }
}

static long job_number(char *event) {
    return strtol(behind(event, "\"job_id\":\"w0!"), NULL, 10);
}

static void submit(char *event) {
    long number = job_number(event);
    if (number >= jobs) {
        jobs = 2 * number + 1;
        job = grown(job, jobs, sizeof *job);
    }
    read_amounts(behind(event, "\"request\":"), &job[number]);
    if ((last & (last - 1)) == 0) /* a power of two, or none yet */
        waiting = grown(waiting, last == 0 ? 1 : 2 * last, sizeof *waiting);
    waiting[last++] = number;
}

static void complete(char *event) {
    long number = job_number(event), at = strtol(behind(event, "\"alloc\":\""), NULL, 10);
    for (long each = 0; each < resources; each++)
        machine[at].amount[each] += job[number].amount[each];
}

static int fits(long number, long at) {
    for (long each = 0; each < resources; each++)
        if (job[number].amount[each] > machine[at].amount[each]) return 0;
    return 1;
}

/* Start waiting jobs in the order of their arrival, until one fits nowhere. */
static void serve(double now) {
    const char *comma = "";
    while (first < last) {
        long number = waiting[first], at = 0;
        while (at < machines && !fits(number, at)) at++;
        if (at == machines) return;
        for (long each = 0; each < resources; each++)
            machine[at].amount[each] -= job[number].amount[each];
        printf("%s{\"timestamp\":%.17g,\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":\"w0!%ld\",\"alloc\":\"%ld\"}}",
               comma, now, number, at);
        comma = ",";
        first++;
    }
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        double now = strtod(behind(line, "{\"now\":"), NULL);
        for (char *event = line; (event = strstr(event, "\"type\":\"")) != NULL;) {
            event += strlen("\"type\":\"");
            if (strncmp(event, "SIMULATION_BEGINS", 17) == 0) begin(event);
            else if (strncmp(event, "JOB_SUBMITTED", 13) == 0) submit(event);
            else if (strncmp(event, "JOB_COMPLETED", 13) == 0) complete(event);
        }
        printf("{\"now\":%.17g,\"events\":[", now);
        serve(now);
        printf("]}\n");
        fflush(stdout);
    }
    return 0;
}
