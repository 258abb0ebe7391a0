// Ids of jobs and representations differ between models; nodes, values,
// variants and codecs identify them. Tested in map_item_test.cc.
#include "planner/layers/map_item.h"

namespace loadline::planner {
namespace {

// The same job of another node or value, in another model; -1: not there.
int SameJob(const SearchModel& from, int job, const SearchModel& to, int node,
            int value) {
  const Job& what = from.jobs[job];
  if (what.node >= 0) {
    if (node < 0 || what.variant < 0) return node;
    for (int same : to.jobs_of[node]) {
      if (to.jobs[same].variant == what.variant) return same;
    }
    return -1;
  }
  if (value < 0) return -1;
  for (const Coding& coding : to.codings[value]) {
    if (to.jobs[coding.encode].codec != what.codec) continue;
    return what.decodes ? coding.decode : coding.encode;
  }
  return -1;
}

// The same representation of another value, in another model; -1: not there.
int SameRepresentation(const SearchModel& from, int representation,
                       const SearchModel& to, int value) {
  if (representation < from.value_count || value < 0) return value;
  const int job = SameJob(from, from.producer[representation], to, -1, value);
  return job < 0 ? -1 : to.makes[job].front();
}

}  // namespace

Subject SubjectOf(const SearchModel& model, const Item& item) {
  if (item.kind != ItemKind::kRun) return {-1, model.value_of[item.id]};
  return {model.jobs[item.id].node, model.jobs[item.id].value};
}

Item MapItem(const SearchModel& from, const Item& item, const SearchModel& to,
             Subject subject) {
  const int id = item.kind == ItemKind::kRun
                     ? SameJob(from, item.id, to, subject.node, subject.value)
                     : SameRepresentation(from, item.id, to, subject.value);
  return {item.kind, id};
}

}  // namespace loadline::planner
