/* The C face alone, from plain C11: what a binding in any language does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/c/loadline.h"

static int failures = 0;

#define EXPECT(condition)                                                \
  do {                                                                   \
    if (!(condition)) {                                                  \
      printf("%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, \
             #condition, loadline_last_error());                         \
      ++failures;                                                        \
    }                                                                    \
  } while (0)

/* Three layers whose outputs the backward pass reads again. Keeping everything
 * takes 410 bytes (x, a, b, c and g3 while L runs); without a, which layer A
 * makes again from x, 310 are enough, and the node dC needs as many. */
static const char kProblem[] =
    "{\"format\":\"loadline.problem/1\",\"name\":\"chain\",\"values\":["
    "{\"id\":0,\"name\":\"x\",\"bytes\":10},"
    "{\"id\":1,\"name\":\"a\",\"bytes\":100},"
    "{\"id\":2,\"name\":\"b\",\"bytes\":100},"
    "{\"id\":3,\"name\":\"c\",\"bytes\":100},"
    "{\"id\":4,\"name\":\"g3\",\"bytes\":100},"
    "{\"id\":5,\"name\":\"g2\",\"bytes\":100},"
    "{\"id\":6,\"name\":\"g1\",\"bytes\":100},"
    "{\"id\":7,\"name\":\"g0\",\"bytes\":10}],\"nodes\":["
    "{\"id\":0,\"name\":\"A\",\"time_ns\":10,\"inputs\":[0],\"outputs\":[1]},"
    "{\"id\":1,\"name\":\"B\",\"time_ns\":10,\"inputs\":[1],\"outputs\":[2]},"
    "{\"id\":2,\"name\":\"C\",\"time_ns\":10,\"inputs\":[2],\"outputs\":[3]},"
    "{\"id\":3,\"name\":\"L\",\"time_ns\":10,\"inputs\":[3],\"outputs\":[4]},"
    "{\"id\":4,\"name\":\"dC\",\"time_ns\":10,\"inputs\":[2,4],"
    "\"outputs\":[5]},"
    "{\"id\":5,\"name\":\"dB\",\"time_ns\":10,\"inputs\":[1,5],"
    "\"outputs\":[6]},"
    "{\"id\":6,\"name\":\"dA\",\"time_ns\":10,\"inputs\":[0,6],"
    "\"outputs\":[7]}],\"outputs\":[7],\"alignment_bytes\":1}";

static loadline_solve_options Budget(int64_t bytes) {
  loadline_solve_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.budget_bytes = bytes;
  options.work_limit = 20000;
  return options;
}

static loadline_status Solve(const loadline_solve_options* options,
                             char** plan) {
  return loadline_solve(kProblem, strlen(kProblem), options, plan);
}

/* The number after "key": in a document of ours; -1: not there. */
static long long NumberOf(const char* json, const char* key) {
  char quoted[64];
  const char* found;
  snprintf(quoted, sizeof(quoted), "\"%s\":", key);
  found = json == NULL ? NULL : strstr(json, quoted);
  return found == NULL ? -1 : atoll(found + strlen(quoted));
}

static void SolvesAndVerifies(void) {
  char* kept = NULL;
  char* plan = NULL;
  char* again = NULL;
  long long peak_bytes;
  loadline_solve_options options;
  EXPECT(loadline_keep_everything(kProblem, strlen(kProblem), &kept) ==
         LOADLINE_OK);
  peak_bytes = NumberOf(kept, "peak_bytes");
  EXPECT(peak_bytes == 410);
  EXPECT(NumberOf(kept, "recompute_ns") == 0);
  options = Budget(peak_bytes - 1);
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(strcmp(loadline_last_error(), "") == 0);
  EXPECT(NumberOf(plan, "arena_bytes") <= peak_bytes - 1);
  EXPECT(NumberOf(plan, "recompute_ns") == 10);
  EXPECT(Solve(&options, &again) == LOADLINE_OK);
  if (plan != NULL && again != NULL) {
    EXPECT(loadline_verify(kProblem, strlen(kProblem), plan, strlen(plan)) ==
           LOADLINE_OK);
    EXPECT(strcmp(plan, again) == 0);
  }
  loadline_free(kept);
  loadline_free(plan);
  loadline_free(again);
}

static void ZeroBytesIsTheSmallestBudget(void) {
  char* plan = NULL;
  loadline_solve_options options = Budget(0);
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(NumberOf(plan, "budget_bytes") == 310);
  loadline_free(plan);
}

static void SharesAreOfThePeakWithEverythingKept(void) {
  char* plan = NULL;
  loadline_solve_options options = Budget(0);
  options.budget_share_ppb = 900000001; /* of 410: 369.0000004, rounded up */
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(NumberOf(plan, "budget_bytes") == 370);
  loadline_free(plan);
  options.budget_bytes = 1;
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "budget_share_ppb") != NULL);
}

static void EffortsAreNumbered(void) {
  char* plan = NULL;
  char* normal = NULL;
  loadline_solve_options options = Budget(400);
  EXPECT(Solve(&options, &normal) == LOADLINE_OK);
  for (options.effort = LOADLINE_EFFORT_NORMAL;
       options.effort <= LOADLINE_EFFORT_MODERATE; ++options.effort) {
    EXPECT(Solve(&options, &plan) == LOADLINE_OK);
    EXPECT(plan != NULL && strcmp(plan, normal) == 0);
    loadline_free(plan);
  }
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "effort") != NULL);
  loadline_free(normal);
}

static void InfeasibleHasFacts(void) {
  char* plan = (char*)1;
  loadline_infeasibility facts = {sizeof(facts), 0, 0, 0};
  loadline_solve_options options = Budget(150);
  EXPECT(Solve(&options, &plan) == LOADLINE_INFEASIBLE);
  EXPECT(plan == NULL);
  EXPECT(strstr(loadline_last_error(), "no plan within 150 bytes") != NULL);
  EXPECT(loadline_last_infeasibility(&facts) == LOADLINE_OK);
  EXPECT(facts.budget_bytes == 150);
  EXPECT(facts.smallest_met_bytes == 310);
  EXPECT(facts.proven_bound_bytes > 150);
  options = Budget(310);
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(loadline_last_infeasibility(&facts) == LOADLINE_INVALID_ARGUMENT);
  loadline_free(plan);
}

static void BadInputIsNamed(void) {
  static const char kUnfinished[] = "{\"format\":\"loadline.problem/1\"";
  char* plan = NULL;
  loadline_solve_options options = Budget(500);
  EXPECT(loadline_solve(kUnfinished, strlen(kUnfinished), &options, &plan) ==
         LOADLINE_INVALID_ARGUMENT);
  EXPECT(strlen(loadline_last_error()) > 0);
  EXPECT(loadline_solve(NULL, 0, &options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "problem is null") != NULL);
  EXPECT(Solve(NULL, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(Solve(&options, NULL) == LOADLINE_INVALID_ARGUMENT);
  options.budget_bytes = -1;
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  options = Budget(500);
  options.time_limit_ns = -1;
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "time_limit_ns") != NULL);
  options = Budget(500);
  options.threads = -1;
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "threads") != NULL);
  options = Budget(500);
  options.forbid_codecs = options.allow_lossy = 1;
  EXPECT(Solve(&options, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "forbid_codecs") != NULL);
  EXPECT(plan == NULL);
  loadline_free(NULL);
  loadline_cancel_now(NULL);
  loadline_cancel_free(NULL);
}

static void ChangedPlansAreNotValid(void) {
  char* plan = NULL;
  char* place;
  loadline_solve_options options = Budget(500);
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  if (plan == NULL) return;
  place = strstr(plan, "\"peak_bytes\":");
  if (place != NULL) place[strlen("\"peak_bytes\":")] = '9';
  EXPECT(loadline_verify(kProblem, strlen(kProblem), plan, strlen(plan)) ==
         LOADLINE_NOT_VALID);
  EXPECT(loadline_verify(kProblem, strlen(kProblem), "[]", 2) ==
         LOADLINE_INVALID_ARGUMENT);
  loadline_free(plan);
}

/* A caller built against another version of the header. */
static void SizesMayDiffer(void) {
  struct {
    loadline_solve_options known;
    int64_t unknown;
  } newer;
  char* plan = NULL;
  loadline_solve_options older = Budget(500);
  older.size = offsetof(loadline_solve_options, forbid_recompute);
  older.forbid_recompute = -1; /* beyond its size: not read */
  EXPECT(Solve(&older, &plan) == LOADLINE_OK);
  loadline_free(plan);
  older.size = 0;
  EXPECT(Solve(&older, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "size") != NULL);
  memset(&newer, 0, sizeof(newer));
  newer.known = Budget(500);
  newer.known.size = sizeof(newer);
  EXPECT(Solve(&newer.known, &plan) == LOADLINE_OK);
  loadline_free(plan);
  newer.unknown = 1;
  EXPECT(Solve(&newer.known, &plan) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(strstr(loadline_last_error(), "does not know") != NULL);
}

struct Watched {
  int calls;
  long long peak_bytes;
  loadline_cancel* cancel;
};

static void Watch(const loadline_progress* progress, void* user) {
  struct Watched* watched = (struct Watched*)user;
  ++watched->calls;
  watched->peak_bytes = progress->peak_bytes;
  if (watched->cancel != NULL) loadline_cancel_now(watched->cancel);
}

static void ProgressIsTold(void) {
  struct Watched watched = {0, 0, NULL};
  char* plan = NULL;
  loadline_solve_options options = Budget(409);
  options.progress = Watch;
  options.user = &watched;
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(watched.calls > 0);
  EXPECT(watched.peak_bytes > 0 && watched.peak_bytes <= 409);
  loadline_free(plan);
}

static void CancelStops(void) {
  struct Watched watched = {0, 0, loadline_cancel_new()};
  char* plan = NULL;
  loadline_solve_options options = Budget(409);
  options.progress = Watch;
  options.user = &watched;
  options.cancel = watched.cancel;
  /* Cancelled from the first find on: that find comes back. */
  EXPECT(Solve(&options, &plan) == LOADLINE_OK);
  EXPECT(watched.calls == 1);
  loadline_free(plan);
  /* Before any. */
  EXPECT(Solve(&options, &plan) == LOADLINE_STOPPED);
  EXPECT(plan == NULL);
  loadline_cancel_free(watched.cancel);
}

static void CanonicalFormIsChecked(void) {
  char* text = NULL;
  EXPECT(loadline_canonical_problem(kProblem, strlen(kProblem), &text) ==
         LOADLINE_OK);
  EXPECT(text != NULL && strcmp(text, kProblem) == 0);
  loadline_free(text);
}

static void KnownMachinesGoByName(void) {
  char* machine = NULL;
  EXPECT(loadline_known_machine("l4", &machine) == LOADLINE_OK);
  EXPECT(NumberOf(machine, "device_bytes") == 23034LL << 20);
  loadline_free(machine);
  EXPECT(loadline_known_machine("l5", &machine) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(machine == NULL);
  EXPECT(strstr(loadline_last_error(), "l40s") != NULL);
  EXPECT(loadline_known_machine(NULL, &machine) == LOADLINE_INVALID_ARGUMENT);
  EXPECT(loadline_known_machine("l4", NULL) == LOADLINE_INVALID_ARGUMENT);
}

int main(void) {
  printf("loadline %s\n", loadline_version());
  SolvesAndVerifies();
  ZeroBytesIsTheSmallestBudget();
  SharesAreOfThePeakWithEverythingKept();
  EffortsAreNumbered();
  InfeasibleHasFacts();
  BadInputIsNamed();
  ChangedPlansAreNotValid();
  SizesMayDiffer();
  ProgressIsTold();
  CancelStops();
  CanonicalFormIsChecked();
  KnownMachinesGoByName();
  return failures == 0 ? 0 : 1;
}
