// An entry is believed only if the thing at its position still has its name, so
// things that were removed do not keep a name. Tested in
// tests/models/graph_test.cc.
#include "models/name_index.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace loadline::models {

struct NameIndex::Names {
  absl::flat_hash_map<std::string, size_t> position;
  // By base: no smaller suffix is free.
  absl::flat_hash_map<std::string, int64_t> next_suffix;
  size_t read = 0;  // things in the index

  bool Has(const std::string& name, size_t at) const {
    const auto it = position.find(name);
    return it != position.end() && it->second == at;
  }
};

NameIndex::NameIndex() = default;
NameIndex::~NameIndex() = default;

NameIndex& NameIndex::operator=(const NameIndex&) {
  names_.reset();
  return *this;
}

// The last thing that was read shows most changes of the things before it.
void NameIndex::Read(size_t count, NameOf name_of) {
  if (names_ != nullptr && names_->read > 0 &&
      (names_->read > count ||
       !names_->Has(name_of(names_->read - 1), names_->read - 1))) {
    names_.reset();
  }
  if (names_ == nullptr) names_ = std::make_unique<Names>();
  for (; names_->read < count; ++names_->read) {
    names_->position[name_of(names_->read)] = names_->read;
  }
}

bool NameIndex::IsTaken(size_t count, NameOf name_of, const std::string& name) {
  auto it = names_->position.find(name);
  if (it == names_->position.end()) return false;
  if (it->second < count && name_of(it->second) == name) return true;
  names_.reset();
  Read(count, name_of);
  return names_->position.contains(name);
}

std::string NameIndex::Unique(size_t count, NameOf name_of,
                              absl::string_view base) {
  Read(count, name_of);
  const std::string name(base);
  if (!name.empty() && !IsTaken(count, name_of, name)) return name;
  const auto known = names_->next_suffix.find(name);
  int64_t suffix = known == names_->next_suffix.end() ? 1 : known->second;
  std::string with_suffix = absl::StrCat(name, ".", suffix);
  while (IsTaken(count, name_of, with_suffix)) {
    with_suffix = absl::StrCat(name, ".", ++suffix);
  }
  names_->next_suffix[name] = suffix;
  return with_suffix;
}

void NameIndex::Rename(size_t i, absl::string_view from, absl::string_view to) {
  if (names_ == nullptr || i >= names_->read) return;
  const auto old = names_->position.find(from);
  if (old != names_->position.end() && old->second == i) {
    names_->position.erase(old);
    names_->next_suffix.clear();
  }
  names_->position[to] = i;
}

}  // namespace loadline::models
