// Every operation lists the operations that it comes after. A stream is its
// frontier: the operations that its next one comes after. An event is a
// recorded frontier, and a captured graph is a set of operations that is
// submitted again at each launch.
#include "tests/executor/support/fake_cuda_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cuda/group_kernel.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

struct FakeCudaDriver::Op {
  std::function<void()> work;
  std::vector<OpPtr> after;  // for an operation of a graph
  // For a submitted operation.
  std::vector<OpPtr> before;
  int64_t waits = 0;
  bool submitted = false;
  bool done = false;
  int64_t done_ns = 0;
};

struct FakeCudaDriver::CapturedGraph {
  std::vector<OpPtr> ops;  // each after those that it depends on
};

struct FakeCudaDriver::FakeStream {
  std::vector<OpPtr> frontier;
  CapturePtr capture;  // none: the stream executes
  bool origin = false;
};

struct FakeCudaDriver::FakeEvent {
  bool timed = false;
  std::vector<OpPtr> frontier;
  CapturePtr capture;
  OpPtr marker;
};

namespace {

template <typename Handle, typename Own>
Handle HandleOf(Own* own) {
  return reinterpret_cast<Handle>(own);
}
template <typename Own, typename Handle>
Own& From(Handle handle) {
  return *reinterpret_cast<Own*>(handle);
}

bool Holds(const std::map<const std::byte*, int64_t>& memory, const void* from,
           int64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  auto it = memory.upper_bound(begin);
  if (it == memory.begin()) return false;
  --it;
  return begin + bytes <= it->first + it->second;
}

}  // namespace

FakeCudaDriver::FakeCudaDriver(FakeCudaOptions options)
    : options_(options),
      random_(options.seed),
      used_bytes_(options.context_bytes) {}

FakeCudaDriver::~FakeCudaDriver() = default;

int64_t FakeCudaDriver::calls(const std::string& name) const {
  const auto found = calls_by_name_.find(name);
  return found == calls_by_name_.end() ? 0 : found->second;
}

absl::Status FakeCudaDriver::Call(const char* name) {
  ++calls_by_name_[name];
  if (!ranges_.empty()) {
    ranged_.push_back(absl::StrCat(ranges_.back(), ": ", name));
  }
  if (calls_++ != options_.fail_call) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, ": injected"));
}

bool FakeCudaDriver::IsDevice(const void* memory, int64_t bytes) const {
  return Holds(device_memory_, memory, bytes);
}

bool FakeCudaDriver::IsPinned(const void* memory, int64_t bytes) const {
  return Holds(pinned_memory_, memory, bytes);
}

bool FakeCudaDriver::Capturing() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const FakeStream* s) { return s->capture != nullptr; });
}

absl::Status FakeCudaDriver::SetDevice(int index) {
  LOADLINE_RETURN_IF_ERROR(Call("SetDevice"));
  if (index == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no GPU ", index));
}

absl::StatusOr<cuda::DeviceFacts> FakeCudaDriver::Facts(int) {
  LOADLINE_RETURN_IF_ERROR(Call("Facts"));
  return cuda::DeviceFacts{.name = "fake",
                           .memory_bytes = options_.memory_bytes,
                           .capability_major = 9,
                           .capability_minor = 0,
                           .copy_engines = options_.copy_engines,
                           .pci_id = "0000:00:00.0"};
}

absl::StatusOr<cuda::MemoryUse> FakeCudaDriver::Memory() {
  LOADLINE_RETURN_IF_ERROR(Call("Memory"));
  return cuda::MemoryUse{options_.memory_bytes - used_bytes_,
                         options_.memory_bytes};
}

absl::StatusOr<std::byte*> FakeCudaDriver::Malloc(int64_t bytes) {
  LOADLINE_RETURN_IF_ERROR(Call("Malloc"));
  if (Capturing()) return absl::InternalError("Malloc in a capture");
  if (bytes > options_.memory_bytes - used_bytes_) {
    return absl::ResourceExhaustedError("Malloc: out of memory");
  }
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(
      256, std::max<size_t>(256, (bytes + 255) / 256 * 256)));
  std::memset(memory, 0xA5, bytes);
  device_memory_[memory] = bytes;
  used_bytes_ += bytes;
  allocated_.push_back(bytes);
  ++live_;
  return memory;
}

absl::Status FakeCudaDriver::Free(std::byte* memory) {
  used_bytes_ -= device_memory_.at(memory);
  device_memory_.erase(memory);
  std::free(memory);
  --live_;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::HostRegister(std::byte* memory, int64_t bytes) {
  LOADLINE_RETURN_IF_ERROR(Call("HostRegister"));
  if (Capturing()) return absl::InternalError("HostRegister in a capture");
  pinned_memory_[memory] = bytes;
  pinned_.push_back(bytes);
  ++live_;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::HostUnregister(std::byte* memory) {
  pinned_memory_.erase(memory);
  --live_;
  return absl::OkStatus();
}

absl::StatusOr<cuda::Stream> FakeCudaDriver::CreateStream() {
  LOADLINE_RETURN_IF_ERROR(Call("CreateStream"));
  auto* stream = new FakeStream;
  streams_.insert(stream);
  ++live_;
  return HandleOf<cuda::Stream>(stream);
}

absl::Status FakeCudaDriver::DestroyStream(cuda::Stream stream) {
  streams_.erase(&From<FakeStream>(stream));
  delete &From<FakeStream>(stream);
  --live_;
  return absl::OkStatus();
}

void FakeCudaDriver::Submit(const OpPtr& op) {
  op->submitted = true;
  if (op->waits == 0) ready_.push_back(op);
}

void FakeCudaDriver::RunOne() {
  const size_t at = random_() % ready_.size();
  const OpPtr op = ready_[at];
  ready_[at] = ready_.back();
  ready_.pop_back();
  if (op->work) op->work();
  clock_ns_ += 1000;
  op->done = true;
  op->done_ns = clock_ns_;
  for (const OpPtr& next : op->before) {
    if (--next->waits == 0) ready_.push_back(next);
  }
  op->before.clear();
}

absl::Status FakeCudaDriver::Push(FakeStream& stream,
                                  std::function<void()> work, OpPtr* pushed) {
  auto op = std::make_shared<Op>();
  op->work = std::move(work);
  if (stream.capture != nullptr) {
    op->after = std::move(stream.frontier);
    stream.capture->ops.push_back(op);
  } else {
    for (const OpPtr& earlier : stream.frontier) {
      if (earlier->done) continue;
      earlier->before.push_back(op);
      ++op->waits;
    }
    Submit(op);
  }
  stream.frontier = {op};
  if (pushed != nullptr) *pushed = op;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::Enqueue(cuda::Stream stream,
                                     std::function<void()> work) {
  LOADLINE_RETURN_IF_ERROR(Call("Kernel"));
  return Push(From<FakeStream>(stream), std::move(work));
}

absl::Status FakeCudaDriver::SynchronizeStream(cuda::Stream handle) {
  LOADLINE_RETURN_IF_ERROR(Call("SynchronizeStream"));
  FakeStream& stream = From<FakeStream>(handle);
  if (stream.capture != nullptr) {
    return absl::InternalError("SynchronizeStream in a capture");
  }
  return RunAll(stream);
}

// Runs everything submitted to the stream.
absl::Status FakeCudaDriver::RunAll(FakeStream& stream) {
  const auto done = [](const OpPtr& op) { return op->done; };
  while (!std::all_of(stream.frontier.begin(), stream.frontier.end(), done)) {
    if (ready_.empty()) return absl::InternalError("streams wait for ever");
    RunOne();
  }
  stream.frontier.clear();
  return absl::OkStatus();
}

absl::StatusOr<cuda::Event> FakeCudaDriver::CreateEvent(bool timed) {
  LOADLINE_RETURN_IF_ERROR(Call("CreateEvent"));
  auto* event = new FakeEvent;
  event->timed = timed;
  ++live_;
  return HandleOf<cuda::Event>(event);
}

absl::Status FakeCudaDriver::DestroyEvent(cuda::Event event) {
  delete &From<FakeEvent>(event);
  --live_;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::RecordEvent(cuda::Event event,
                                         cuda::Stream stream) {
  LOADLINE_RETURN_IF_ERROR(Call("RecordEvent"));
  FakeEvent& e = From<FakeEvent>(event);
  FakeStream& s = From<FakeStream>(stream);
  if (e.timed) LOADLINE_RETURN_IF_ERROR(Push(s, nullptr, &e.marker));
  e.frontier = s.frontier;
  e.capture = s.capture;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::WaitEvent(cuda::Stream stream, cuda::Event event) {
  LOADLINE_RETURN_IF_ERROR(Call("WaitEvent"));
  FakeStream& s = From<FakeStream>(stream);
  const FakeEvent& e = From<FakeEvent>(event);
  if (s.capture != e.capture) {
    if (s.capture != nullptr) {
      return absl::InternalError("a captured stream waits for one that is not");
    }
    s.capture = e.capture;
    s.frontier.clear();
  }
  s.frontier.insert(s.frontier.end(), e.frontier.begin(), e.frontier.end());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FakeCudaDriver::ElapsedNs(cuda::Event from,
                                                  cuda::Event to) {
  LOADLINE_RETURN_IF_ERROR(Call("ElapsedNs"));
  const OpPtr& a = From<FakeEvent>(from).marker;
  const OpPtr& b = From<FakeEvent>(to).marker;
  if (a == nullptr || b == nullptr || !a->done || !b->done) {
    return absl::InternalError("ElapsedNs of events that have not happened");
  }
  return b->done_ns - a->done_ns;
}

absl::Status FakeCudaDriver::Copy(void* to, const void* from, int64_t bytes,
                                  cuda::CopyKind kind, cuda::Stream stream) {
  LOADLINE_RETURN_IF_ERROR(Call("Copy"));
  const bool out = kind == cuda::CopyKind::kToHost;
  if (!IsDevice(out ? from : to, bytes)) {
    return absl::InternalError("Copy outside device memory");
  }
  FakeStream& s = From<FakeStream>(stream);
  if (IsPinned(out ? to : from, bytes)) {
    return Push(s, [=] { std::memcpy(to, from, bytes); });
  }
  if (s.capture != nullptr) {
    return absl::InternalError("a captured copy of memory that is not pinned");
  }
  if (out) {  // returns when the bytes have arrived
    LOADLINE_RETURN_IF_ERROR(RunAll(s));
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  const auto* begin = static_cast<const std::byte*>(from);
  return Push(s, [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(to, staged.data(), staged.size());
  });
}

absl::Status FakeCudaDriver::Fill(std::byte* memory, uint8_t byte,
                                  int64_t bytes, cuda::Stream stream) {
  LOADLINE_RETURN_IF_ERROR(Call("Fill"));
  if (!IsDevice(memory, bytes)) {
    return absl::InternalError("Fill outside device memory");
  }
  return Push(From<FakeStream>(stream),
              [=] { std::memset(memory, byte, bytes); });
}

void FakeCudaDriver::BeginRange(const char* name) { ranges_.push_back(name); }

void FakeCudaDriver::EndRange() { ranges_.pop_back(); }

absl::Status FakeCudaDriver::CallHost(cuda::Stream stream,
                                      void (*function)(void*), void* data) {
  LOADLINE_RETURN_IF_ERROR(Call("CallHost"));
  return Push(From<FakeStream>(stream), [=] { function(data); });
}

absl::Status FakeCudaDriver::BeginCapture(cuda::Stream stream) {
  LOADLINE_RETURN_IF_ERROR(Call("BeginCapture"));
  FakeStream& s = From<FakeStream>(stream);
  if (s.capture != nullptr) return absl::InternalError("two captures at once");
  s.capture = std::make_shared<CapturedGraph>();
  s.origin = true;
  s.frontier.clear();
  return absl::OkStatus();
}

absl::StatusOr<cuda::Graph> FakeCudaDriver::EndCapture(cuda::Stream stream) {
  FakeStream& origin = From<FakeStream>(stream);
  absl::Status status = Call("EndCapture");
  if (origin.capture == nullptr || !origin.origin) {
    return absl::InternalError("no capture began on this stream");
  }
  const CapturePtr graph = origin.capture;
  // Predecessors of the end of the origin stream; the rest was never joined.
  std::set<const Op*> joined;
  std::vector<OpPtr> todo = origin.frontier;
  while (!todo.empty()) {
    const OpPtr op = todo.back();
    todo.pop_back();
    if (!joined.insert(op.get()).second) continue;
    todo.insert(todo.end(), op->after.begin(), op->after.end());
  }
  for (FakeStream* s : streams_) {
    if (s->capture != graph) continue;
    for (const OpPtr& op : s->frontier) {
      if (joined.count(op.get()) == 0) {
        status.Update(absl::InternalError("a captured stream did not join"));
      }
    }
    s->capture = nullptr;
    s->frontier.clear();
    s->origin = false;
  }
  LOADLINE_RETURN_IF_ERROR(status);
  ++live_;
  return HandleOf<cuda::Graph>(new CapturePtr(graph));
}

absl::Status FakeCudaDriver::DestroyGraph(cuda::Graph graph) {
  delete &From<CapturePtr>(graph);
  --live_;
  return absl::OkStatus();
}

absl::StatusOr<cuda::GraphExec> FakeCudaDriver::Instantiate(cuda::Graph graph) {
  LOADLINE_RETURN_IF_ERROR(Call("Instantiate"));
  ++live_;
  return HandleOf<cuda::GraphExec>(new CapturePtr(From<CapturePtr>(graph)));
}

absl::Status FakeCudaDriver::DestroyGraphExec(cuda::GraphExec exec) {
  delete &From<CapturePtr>(exec);
  --live_;
  return absl::OkStatus();
}

absl::Status FakeCudaDriver::LaunchGraph(cuda::GraphExec exec,
                                         cuda::Stream stream) {
  LOADLINE_RETURN_IF_ERROR(Call("LaunchGraph"));
  FakeStream& s = From<FakeStream>(stream);
  LOADLINE_RETURN_IF_ERROR(Push(s, nullptr));  // beginning of the graph
  const OpPtr begin = s.frontier[0];
  auto end = std::make_shared<Op>();
  std::map<const Op*, OpPtr> copies;
  const auto order = [](const OpPtr& first, const OpPtr& second) {
    first->before.push_back(second);
    ++second->waits;
  };
  for (const OpPtr& op : From<CapturePtr>(exec)->ops) {
    auto copy = std::make_shared<Op>();
    copy->work = op->work;
    order(begin, copy);
    for (const OpPtr& earlier : op->after) {
      order(copies.at(earlier.get()), copy);
    }
    order(copy, end);
    copies[op.get()] = copy;
  }
  order(begin, end);
  s.frontier = {end};
  return absl::OkStatus();
}

namespace {

// Runs late, with copies of the addresses, and stores its data error in the
// step's word. As on a GPU, running work may outlive the kernel object.
class StreamKernel final : public cuda::CudaKernel {
 public:
  StreamKernel(FakeCudaDriver& driver, std::unique_ptr<Kernel> host)
      : driver_(driver), shared_(std::make_shared<Shared>()) {
    shared_->host = std::move(host);
  }

  int64_t workspace_bytes() const override {
    return shared_->host->workspace_bytes();
  }
  std::vector<std::string> algorithms() const override {
    return shared_->host->algorithms();
  }

  absl::Status Enqueue(const KernelArgs& args,
                       const cuda::LaunchContext& context) override {
    return driver_.Enqueue(
        context.stream, [shared = shared_, context,
                         inputs = std::vector<const std::byte*>(
                             args.inputs.begin(), args.inputs.end()),
                         outputs = std::vector<std::byte*>(args.outputs.begin(),
                                                           args.outputs.end()),
                         workspace = args.workspace, scalars = args.scalars] {
          const KernelArgs args = {.inputs = inputs,
                                   .outputs = outputs,
                                   .workspace = workspace,
                                   .scalars = scalars};
          auto* emulated = dynamic_cast<cuda::CudaKernel*>(shared->host.get());
          absl::Status status = emulated == nullptr
                                    ? shared->host->Run(args)
                                    : emulated->Enqueue(args, context);
          if (status.ok()) return;
          shared->error = std::move(status);
          const auto word = static_cast<cuda::DataErrorWord>(context.launch)
                            << cuda::kPositionBits;
          *context.data_error = std::min(*context.data_error, word);
        });
  }

  absl::Status DescribeDataError(int64_t position) const override {
    const auto* emulated =
        dynamic_cast<const cuda::CudaKernel*>(shared_->host.get());
    return emulated == nullptr || !shared_->error.ok()
               ? shared_->error
               : emulated->DescribeDataError(position);
  }

 private:
  struct Shared {
    std::unique_ptr<Kernel> host;
    absl::Status error;
  };

  FakeCudaDriver& driver_;
  std::shared_ptr<Shared> shared_;
};

// The same for emulated kernels that can be merged into one launch.
class StreamGroupKernel final : public cuda::GroupKernel {
 public:
  StreamGroupKernel(FakeCudaDriver& driver, std::shared_ptr<GroupKernel> kernel)
      : driver_(driver), kernel_(std::move(kernel)) {}

  bool Joins(const GroupKernel& other) const override {
    return kernel_->Joins(
        *static_cast<const StreamGroupKernel&>(other).kernel_);
  }
  int64_t most_members() const override { return kernel_->most_members(); }

  absl::Status EnqueueGroup(absl::Span<const Member> members,
                            const cuda::LaunchContext& context) override {
    std::vector<Late> late;
    for (const Member& m : members) {
      late.push_back({static_cast<StreamGroupKernel*>(m.kernel)->kernel_,
                      {m.args.inputs.begin(), m.args.inputs.end()},
                      {m.args.outputs.begin(), m.args.outputs.end()},
                      m.args.scalars});
    }
    return driver_.Enqueue(context.stream, [late = std::move(late), context] {
      std::vector<Member> members;
      for (const Late& l : late) {
        members.push_back(
            {l.kernel.get(),
             {.inputs = l.inputs, .outputs = l.outputs, .scalars = l.scalars}});
      }
      LOADLINE_CHECK(members[0].kernel->EnqueueGroup(members, context).ok());
    });
  }

 private:
  struct Late {
    std::shared_ptr<GroupKernel> kernel;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    const StepScalars* scalars;
  };

  FakeCudaDriver& driver_;
  std::shared_ptr<GroupKernel> kernel_;
};

}  // namespace

PrepareFunction OnStreams(FakeCudaDriver& driver, PrepareFunction host) {
  return
      [&driver, host = std::move(host)](
          const models::Graph& graph,
          const models::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                                  host(graph, node));
        auto* group = dynamic_cast<cuda::GroupKernel*>(kernel.get());
        if (group == nullptr) {
          return std::make_unique<StreamKernel>(driver, std::move(kernel));
        }
        kernel.release();
        return std::make_unique<StreamGroupKernel>(
            driver, std::shared_ptr<cuda::GroupKernel>(group));
      };
}

}  // namespace loadline::executor
