/* Loadline's planner for other programs, in C: a problem goes in as JSON, a
 * verified plan comes out as JSON (docs/formats.md has both forms).
 *
 *   loadline_solve_options options = {sizeof(options)};
 *   options.budget_bytes = 1 << 20;
 *   char* plan;
 *   if (loadline_solve(problem, strlen(problem), &options, &plan) !=
 *       LOADLINE_OK) {
 *     fprintf(stderr, "%s\n", loadline_last_error());
 *   }
 *   loadline_free(plan);
 *
 * Every function may be called from any thread, several at once. Invalid
 * input never throws or aborts. Returned strings end with a zero byte. The
 * caller owns them and frees them with loadline_free, unless a comment here
 * says otherwise.
 *
 * Structs begin with their own size, which the caller sets: a library that
 * knows more fields takes their defaults, one that knows fewer accepts a longer
 * struct if the rest is zero. Zero selects the default of every option. */
#ifndef LOADLINE_PLUGINS_C_LOADLINE_H_
#define LOADLINE_PLUGINS_C_LOADLINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOADLINE_EXPORT __attribute__((visibility("default")))

/* These are not the exit codes of the command. */
typedef enum loadline_status {
  LOADLINE_OK = 0,
  LOADLINE_INVALID_ARGUMENT = 1, /* a document, an option or a pointer */
  LOADLINE_INFEASIBLE = 2,       /* no plan within the budget was found */
  LOADLINE_STOPPED = 3,   /* time limit or cancel before any plan was found */
  LOADLINE_NOT_VALID = 4, /* loadline_verify: the plan is wrong */
  LOADLINE_INTERNAL = 5   /* out of memory, or a bug of ours */
} loadline_status;

/* "0.1.0". Static: not to be freed. */
LOADLINE_EXPORT const char* loadline_version(void);

/* The message of this thread's last failed call: one line that names what and
 * where. Never null; valid until the thread's next call. */
LOADLINE_EXPORT const char* loadline_last_error(void);

/* Details of this thread's last LOADLINE_INFEASIBLE. */
typedef struct loadline_infeasibility {
  size_t size;
  int64_t budget_bytes;
  int64_t smallest_met_bytes; /* the smallest budget a plan was found for */
  int64_t proven_bound_bytes; /* no plan takes fewer */
} loadline_infeasibility;

/* LOADLINE_INVALID_ARGUMENT if the thread's last call was not infeasible. */
LOADLINE_EXPORT loadline_status
loadline_last_infeasibility(loadline_infeasibility* facts);

/* Stops searches, from any thread or from a progress callback. Several calls
 * may share one. It cannot be reset. */
typedef struct loadline_cancel loadline_cancel;
LOADLINE_EXPORT loadline_cancel* loadline_cancel_new(
    void); /* null: no memory */
LOADLINE_EXPORT void loadline_cancel_now(loadline_cancel* cancel);
LOADLINE_EXPORT void loadline_cancel_free(loadline_cancel* cancel);

typedef struct loadline_progress {
  size_t size;
  double elapsed_s;
  int64_t peak_bytes;
  int64_t step_ns;
  int64_t bound_step_ns;
} loadline_progress;

/* Called in the solving thread at every better plan. */
typedef void (*loadline_progress_fn)(const loadline_progress* progress,
                                     void* user);

/* How much to search, and when to search again. Work is counted in candidate
 * edits, about a million a second, and at most 300,000 for each node. */
typedef enum loadline_effort {
  LOADLINE_EFFORT_NORMAL = 0, /* 25 million; where no plan was found, one is
                                 made from the plan with the fewest bytes */
  LOADLINE_EFFORT_QUICK = 1,  /* 300,000, and never again */
  LOADLINE_EFFORT_THOROUGH =
      2, /* as normal; a plan that waits for copies for over 5 % of its step is
            searched again with 4 times the work */
  LOADLINE_EFFORT_MODERATE = 3 /* 2 million; a plan that waits so long is
                                  searched again with 8 times the work */
} loadline_effort;

typedef struct loadline_solve_options {
  size_t size;
  int64_t budget_bytes; /* 0: the smallest budget that can be met, or a share */
  int32_t forbid_recompute;
  int32_t forbid_offload;
  int32_t allow_lossy;   /* also codecs that change values */
  int32_t allow_inexact; /* also variants that round differently */
  int64_t work_limit; /* candidate edits of the first search; 0: the effort's.
                         The work for the bound on the step shrinks with it */
  int64_t time_limit_ns; /* 0: none, and the same plan on every run */
  uint64_t seed;
  loadline_progress_fn progress; /* may be null */
  void* user;                    /* handed to progress */
  const loadline_cancel* cancel; /* may be null; must outlive the call */
  int32_t forbid_harder;    /* never search again, whatever the effort says */
  int64_t budget_share_ppb; /* with budget_bytes 0: a share of the peak when
                               everything is kept, in billionths, rounded up to
                               a whole byte; 0: none */
  int32_t budget_counts_reserved; /* budget_bytes are a whole GPU's: the
                                     machine's reserved_bytes come off */
  int32_t effort;                 /* loadline_effort */
  int32_t threads; /* at most so many search at a time; 0: one per processor.
                      Without a time limit the plan is the same for any */
  int64_t forbid_codecs; /* store nothing compressed, with or without loss; 64
                            bits, so that older programs' padding is not read */
} loadline_solve_options;

/* A verified plan within the budget, as loadline.plan/1. Stopped by cancel or
 * time limit, it is the best so far, if there is one. On failure
 * *plan is null. */
LOADLINE_EXPORT loadline_status
loadline_solve(const char* problem, size_t problem_bytes,
               const loadline_solve_options* options, char** plan);

/* The plan of every node once in the given order, nothing copied: its
 * predicted.peak_bytes are 100 %, or arena_bytes where no order of the nodes
 * can be laid out in the peak. */
LOADLINE_EXPORT loadline_status loadline_keep_everything(const char* problem,
                                                         size_t problem_bytes,
                                                         char** plan);

/* LOADLINE_OK if the plan is valid for the problem, else LOADLINE_NOT_VALID;
 * LOADLINE_INVALID_ARGUMENT if one of them cannot be read. */
LOADLINE_EXPORT loadline_status loadline_verify(const char* problem,
                                                size_t problem_bytes,
                                                const char* plan,
                                                size_t plan_bytes);

/* The nominal profile (loadline.machine/2) of a well-known GPU, by a name such
 * as "h100-sxm" or by its driver's, such as "NVIDIA L4".
 * LOADLINE_INVALID_ARGUMENT, with all names, if there is none. */
LOADLINE_EXPORT loadline_status loadline_known_machine(const char* name,
                                                       char** machine);

/* The problem's canonical bytes (docs/formats.md), after every check. */
LOADLINE_EXPORT loadline_status loadline_canonical_problem(const char* problem,
                                                           size_t problem_bytes,
                                                           char** canonical);

LOADLINE_EXPORT void loadline_free(char* text); /* null is fine */

#ifdef __cplusplus
}
#endif

#endif /* LOADLINE_PLUGINS_C_LOADLINE_H_ */
