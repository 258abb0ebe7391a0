// Every instance becomes a buffer and every item a step. The waits follow from
// the copy items: the first Run after an Out waits for its copy, an In waits
// for everything that compute has passed, a read of a copied value waits for
// its copy. So two buffers whose positions do not overlap are ordered by lanes
// and waits, and addresses are plain interval packing. Tested in
// lower_schedule_test.cc and, by Verify, in solve_test.cc.
#include "planner/layout/lower_schedule.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "planner/base/check.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

class Lowering {
 public:
  Lowering(const SearchModel& model, const Schedule& schedule,
           const LowerScheduleOptions& options)
      : model_(model),
        problem_(*model.problem),
        schedule_(schedule),
        options_(options),
        lives_(FindLifetimes(model, schedule)) {}

  absl::StatusOr<Plan> LowerSchedule(PackReport* report) {
    LOADLINE_CHECK(lives_.valid);
    plan_.problem_name = problem_.name;
    plan_.budget_bytes = options_.budget_bytes;
    AddDeviceBuffers();
    if (problem_.addresses) LOADLINE_RETURN_IF_ERROR(PackDevice(report));
    AddHostBuffers();
    LOADLINE_RETURN_IF_ERROR(PackHost());
    AddSteps();
    return std::move(plan_);
  }

 private:
  int Length() const { return static_cast<int>(schedule_.items.size()); }
  bool HostHome(int chain) const {
    return chain >= 0 && schedule_.host_home[chain];
  }

  BufferId AddBuffer(int representation, int64_t bytes, Space space) {
    Buffer buffer;
    buffer.value = representation < 0
                       ? kNoValue
                       : ValueId{model_.value_of[representation]};
    buffer.bytes = bytes;
    buffer.space = space;
    plan_.buffers.push_back(buffer);
    return BufferId{static_cast<int32_t>(plan_.buffers.size()) - 1};
  }

  void AddDeviceBuffers() {
    for (const Instance& instance : lives_.instances) {
      const bool none =
          instance.made_at < 0 && instance.last_read < 0 && !instance.last;
      buffer_of_.push_back(none ? kNoBuffer
                                : AddBuffer(instance.value,
                                            Bytes(instance.value),
                                            Space::kDevice));
    }
    workspace_of_.assign(Length(), kNoBuffer);
    for (int p = 0; p < Length(); ++p) {
      const Item& item = schedule_.items[p];
      if (item.kind != ItemKind::kRun) continue;
      const int64_t bytes = model_.raw_workspace_bytes[item.id];
      if (bytes > 0) workspace_of_[p] = AddBuffer(-1, bytes, Space::kDevice);
    }
  }

  int64_t Bytes(int representation) const {
    return model_.raw_bytes[representation];
  }

  int Root(int instance) {
    while (group_[instance] != instance) {
      instance = group_[instance] = group_[group_[instance]];
    }
    return instance;
  }

  // Instances at one address: taken over in place, or a persistent value at
  // the start and at the end of the step.
  void GroupInstances() {
    const int count = static_cast<int>(lives_.instances.size());
    group_.resize(count);
    std::iota(group_.begin(), group_.end(), 0);
    std::vector<int> first(model_.chains.size(), -1);
    for (int i = 0; i < count; ++i) {
      const Instance& instance = lives_.instances[i];
      if (instance.overwrites >= 0) group_[Root(i)] = Root(instance.overwrites);
      const int chain = model_.chain_of[instance.value];
      if (chain < 0 || HostHome(chain)) continue;
      if (instance.made_at < 0) first[chain] = i;
      if (instance.last && model_.LastVersion(instance.value)) {
        const int a = Root(i), b = Root(first[chain]);
        group_[a] = b;
      }
    }
  }

  absl::Status PackDevice(PackReport* report) {
    GroupInstances();
    std::vector<PackItem> items;
    std::vector<BufferId> buffers;
    for (size_t i = 0; i < lives_.instances.size(); ++i) {
      if (buffer_of_[i] == kNoBuffer) continue;
      const Instance& instance = lives_.instances[i];
      PackItem item;
      item.id = static_cast<int64_t>(Index(buffer_of_[i]));
      item.lower = instance.lower;
      item.upper = std::max(instance.lower, instance.upper);
      item.size = Bytes(instance.value);
      item.group = Root(static_cast<int>(i));
      items.push_back(item);
      buffers.push_back(buffer_of_[i]);
    }
    for (int p = 0; p < Length(); ++p) {
      if (workspace_of_[p] == kNoBuffer) continue;
      PackItem item;
      item.id = static_cast<int64_t>(Index(workspace_of_[p]));
      item.lower = p;
      item.upper = p + 1;
      item.size = plan_.buffer(workspace_of_[p]).bytes;
      items.push_back(item);
      buffers.push_back(workspace_of_[p]);
    }
    PackOptions pack;
    pack.capacity_bytes = options_.budget_bytes;
    pack.alignment_bytes = model_.alignment_bytes;
    pack.work_limit = options_.pack_work_limit;
    pack.seed = options_.seed;
    pack.stop = options_.stop;
    PackReport best;
    if (report == nullptr) report = &best;
    absl::StatusOr<std::vector<int64_t>> packed = Pack(items, pack, report);
    if (!packed.ok() &&
        !(options_.tightest && absl::IsResourceExhausted(packed.status()))) {
      return packed.status();
    }
    const std::vector<int64_t>& offsets = report->offsets;
    for (size_t i = 0; i < buffers.size(); ++i) {
      Buffer& buffer = plan_.buffers[Index(buffers[i])];
      buffer.offset = offsets[i];
      plan_.arena_bytes =
          std::max(plan_.arena_bytes, buffer.offset + buffer.bytes);
    }
    if (options_.tightest) plan_.budget_bytes = plan_.arena_bytes;
    return absl::OkStatus();
  }

  void AddHostBuffers() {
    host_of_.assign(model_.value_count, kNoBuffer);
    const auto add = [&](int value) {
      if (host_of_[value] == kNoBuffer) {
        host_of_[value] = AddBuffer(value, Bytes(value), Space::kHost);
      }
    };
    for (size_t c = 0; c < model_.chains.size(); ++c) {
      if (schedule_.host_home[c]) add(model_.chains[c].versions.front());
    }
    for (const Item& item : schedule_.items) {
      if (item.kind == ItemKind::kOut) add(item.id);
    }
  }

  // By instance: position of its first read; the schedule's length if none.
  std::vector<int> FirstReads() const {
    std::vector<int> first(lives_.instances.size(), Length());
    for (int p = Length() - 1; p >= 0; --p) {
      for (int read : lives_.reads[p]) first[read] = p;
    }
    return first;
  }

  // A host slot is occupied from the making of the copied instance to the first
  // read of the last copy back; that of a value that lives on the host, always.
  absl::Status PackHost() {
    std::vector<int> lower(model_.value_count, 0);
    std::vector<int> upper(model_.value_count, Length());
    const std::vector<int> first_read = FirstReads();
    for (int p = 0; p < Length(); ++p) {
      const Item& item = schedule_.items[p];
      if (item.kind == ItemKind::kOut) {
        const Instance& source = lives_.instances[lives_.reads[p][0]];
        lower[item.id] = std::max(source.made_at, 0);
      } else if (item.kind == ItemKind::kIn) {
        upper[item.id] = first_read[lives_.makes[p][0]];
      }
    }
    std::vector<PackItem> items;
    std::vector<int> values;
    for (int v = 0; v < model_.value_count; ++v) {
      if (host_of_[v] == kNoBuffer) continue;
      const int chain = model_.chain_of[v];
      const bool home =
          HostHome(chain) && (model_.FirstVersion(v) || model_.LastVersion(v));
      PackItem item;
      item.id = v;
      item.lower = home ? 0 : lower[v];
      item.upper = home ? Length() : std::max(upper[v], lower[v] + 1);
      item.size = Bytes(v);
      item.group = home ? chain : -1;
      items.push_back(item);
      values.push_back(v);
    }
    if (items.empty()) return absl::OkStatus();
    PackOptions pack;
    pack.capacity_bytes = model_.host_limit_bytes;
    pack.alignment_bytes = problem_.addresses ? model_.alignment_bytes : 1;
    pack.work_limit = options_.pack_work_limit;
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                              Pack(items, pack));
    for (size_t i = 0; i < values.size(); ++i) {
      Buffer& buffer = plan_.buffers[Index(host_of_[values[i]])];
      buffer.offset = problem_.addresses ? offsets[i] : 0;
      plan_.host_bytes = std::max(plan_.host_bytes, offsets[i] + buffer.bytes);
    }
    return absl::OkStatus();
  }

  StepId AddStep(Step step) {
    std::sort(step.wait.begin(), step.wait.end());
    step.wait.erase(std::unique(step.wait.begin(), step.wait.end()),
                    step.wait.end());
    plan_.steps.push_back(std::move(step));
    return StepId{static_cast<int32_t>(plan_.steps.size()) - 1};
  }

  void AddSteps() {
    constexpr StepId kNone{-1};
    const bool stops = model_.copies_exclude_compute;
    StepId compute = kNone;  // last on the compute lane
    // Last copy since then that compute may not pass: a copy out, or any where
    // copies stop compute.
    StepId passed_copy = kNone;
    std::vector<StepId> step_at(Length(), kNone);
    for (int p = 0; p < Length(); ++p) {
      const Item& item = schedule_.items[p];
      Step step;
      if (item.kind == ItemKind::kRun) {
        for (int read : lives_.reads[p]) {
          const int made_at = lives_.instances[read].made_at;
          if (made_at >= 0 && schedule_.items[made_at].kind == ItemKind::kIn) {
            step.wait.push_back(step_at[made_at]);
          }
        }
        if (passed_copy != kNone) step.wait.push_back(passed_copy);
        AddWork(p, step);
        compute = step_at[p] = AddStep(std::move(step));
        passed_copy = kNone;
        continue;
      }
      step.kind = StepKind::kCopy;
      const bool in = item.kind == ItemKind::kIn;
      if ((in || stops) && compute != kNone) step.wait.push_back(compute);
      if ((in || stops) && passed_copy != kNone) {
        step.wait.push_back(passed_copy);
      }
      if (!in) {
        step.lane = Lane::kD2h;
        const int source = lives_.reads[p][0];
        step.from = buffer_of_[source];
        step.to = host_of_[item.id];
        const int made_at = lives_.instances[source].made_at;
        if (made_at >= 0) step.wait.push_back(step_at[made_at]);
        step_at[p] = AddStep(std::move(step));
      } else {
        step.lane = Lane::kH2d;
        step.from = host_of_[item.id];
        step.to = buffer_of_[lives_.makes[p][0]];
        step_at[p] = AddStep(std::move(step));
      }
      if (!in || stops) passed_copy = step_at[p];
    }
  }

  // The node, variant or codec of the run at the position.
  void AddWork(int position, Step& step) {
    const Job& job = model_.jobs[schedule_.items[position].id];
    if (job.node < 0) {
      step.kind = job.decodes ? StepKind::kDecode : StepKind::kEncode;
      step.codec = model_.stash[job.value][job.codec].name;
      step.from = buffer_of_[lives_.reads[position][0]];
      step.to = buffer_of_[lives_.makes[position][0]];
      return;
    }
    step.node = NodeId{job.node};
    if (job.variant >= 0) {
      step.variant = model_.variants[job.node][job.variant].name;
    }
    AddOperands(position, step);
    step.workspace = workspace_of_[position];
    plan_.sequence.push_back(step.node);
  }

  void AddOperands(int position, Step& step) {
    const Node& node = problem_.node(step.node);
    // In the order of SearchModel::reads: values rise, none twice.
    const std::span<const int> reads = lives_.reads[position];
    for (ValueId input : node.inputs) {
      const auto read =
          std::lower_bound(reads.begin(), reads.end(), static_cast<int>(input),
                           [&](int instance, int value) {
                             return lives_.instances[instance].value < value;
                           });
      LOADLINE_CHECK(read != reads.end());
      step.in.push_back(buffer_of_[*read]);
    }
    for (int made : lives_.makes[position]) {
      step.out.push_back(buffer_of_[made]);
    }
  }

  const SearchModel& model_;
  const Problem& problem_;
  const Schedule& schedule_;
  const LowerScheduleOptions& options_;
  const Lifetimes lives_;
  Plan plan_;
  std::vector<BufferId> buffer_of_;     // by instance
  std::vector<BufferId> workspace_of_;  // by position
  std::vector<BufferId> host_of_;       // by value
  std::vector<int> group_;              // by instance
};

}  // namespace

absl::StatusOr<Plan> LowerSchedule(const SearchModel& model,
                                   const Schedule& schedule,
                                   const LowerScheduleOptions& options,
                                   PackReport* report) {
  return Lowering(model, schedule, options).LowerSchedule(report);
}

}  // namespace loadline::planner
