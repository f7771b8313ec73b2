// The pickle machine: https://github.com/python/cpython/blob/main/Lib/pickletools.py describes the instructions.
#include "sparsight/io/pickle.h"

#include <cstring>
#include <unordered_map>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

using Kind = PickleValue::Kind;

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  Pickle run() {
    while (true) {
      const uint8_t code = number<uint8_t>();
      if (code == '.') break;  // STOP
      step(code);
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    fail(path_, ": the description of its tensors is damaged (", why, " at byte ", position_, ")");
  }

  // -- reading
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - position_) damaged("it ends early");
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }
  template <class T>
  T number() {  // little-endian, as the machine is
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) damaged("it ends early");
    std::string text(take(end - position_));
    take(1);
    return text;
  }
  int64_t long_number(size_t count) {  // two's complement of any length
    const std::string_view digits = take(count);
    if (count > 8) return INT64_MAX;  // no size or offset; longer ones occur in foreign state such as random generators
    uint64_t value = count > 0 && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    return static_cast<int64_t>(value);
  }

  // -- stack
  void push(uint32_t index) { stack_.push_back(index); }
  void push_new(Kind kind, int64_t number = 0, std::string text = {}, std::vector<uint32_t> items = {}) {
    pickle_.values.push_back({kind, number, std::move(text), std::move(items)});
    push(static_cast<uint32_t>(pickle_.values.size() - 1));
  }
  uint32_t top() const {
    if (stack_.size() <= floor()) damaged("its stack is empty");
    return stack_.back();
  }
  uint32_t pop() {
    const uint32_t index = top();
    stack_.pop_back();
    return index;
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    std::vector<uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<uint32_t> pop_several(size_t count) {
    std::vector<uint32_t> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }
  PickleValue& value(uint32_t index) { return pickle_.values[index]; }

  // -- building
  void extend(Kind kind, const std::vector<uint32_t>& items) {
    PickleValue& target = value(top());
    if (target.kind == Kind::kObject) return;
    if (target.kind != kind || (kind == Kind::kDict && items.size() % 2 != 0)) damaged("items for the wrong container");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  // Copies the items for a second value. The total of all copies is limited to the size of the pickle: no genuine file
  // comes near it, but a hostile one could copy one long list over and over.
  std::vector<uint32_t> copy_items(uint32_t index) {
    copied_ += value(index).items.size();
    if (copied_ > bytes_.size()) damaged("it repeats itself");
    return value(index).items;
  }

  std::vector<uint32_t> list_pairs(uint32_t list) {  // [(key, value), ...] as key, value, ...
    std::vector<uint32_t> items;
    for (const uint32_t index : copy_items(list)) {
      if (value(index).items.size() != 2) damaged("an OrderedDict of no pairs");
      items.insert(items.end(), value(index).items.begin(), value(index).items.end());
    }
    return items;
  }

  std::string read_name(uint32_t index) {  // of a class or function; names are short, so copying them is cheap
    const PickleValue& named = value(index);
    return named.kind == Kind::kGlobal || named.kind == Kind::kObject ? named.text : "an unnamed object";
  }

  void push_global(const std::string& module, const std::string& name) {
    if (module.size() + name.size() > 1000) damaged("a name is too long");
    push_new(Kind::kGlobal, 0, module + "." + name);
  }

  void call() {  // REDUCE
    const uint32_t tuple = pop(), callable = pop();
    if (value(tuple).kind != Kind::kTuple) damaged("a call without arguments");
    const std::string name = read_name(callable);
    const std::vector<uint32_t> arguments = copy_items(tuple);
    if (name == "collections.OrderedDict")
      push_new(Kind::kDict, 0, {}, arguments.empty() ? arguments : list_pairs(arguments[0]));
    else if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor")
      push_new(Kind::kTensor, 0, {}, arguments);
    else if ((name == "torch._utils._rebuild_parameter" && !arguments.empty()) ||
             (name == "torch.Size" && arguments.size() == 1))
      push(arguments[0]);
    else
      push_new(Kind::kObject, 0, name);
  }

  void remember(uint32_t key) { memo_[key] = top(); }
  void recall(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) damaged("a reference to nothing");
    push(found->second);
  }

  void step(uint8_t code);

  std::string_view bytes_;
  const std::string& path_;
  size_t position_ = 0, copied_ = 0;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
};

void PickleMachine::step(uint8_t code) {
  switch (code) {
    case 0x80:
      take(1);
      return;  // PROTO
    case 0x95:
      take(8);
      return;  // FRAME
    case '(':
      marks_.push_back(stack_.size());
      return;
    case '0':
      pop();
      return;
    case '1':
      pop_to_mark();
      return;
    case '2':
      push(top());
      return;  // DUP
    case 'N':
      push_new(Kind::kNone);
      return;
    case 0x88:
      push_new(Kind::kBool, 1);
      return;
    case 0x89:
      push_new(Kind::kBool, 0);
      return;
    case 'J':
      push_new(Kind::kInteger, number<int32_t>());
      return;
    case 'K':
      push_new(Kind::kInteger, number<uint8_t>());
      return;
    case 'M':
      push_new(Kind::kInteger, number<uint16_t>());
      return;
    case 0x8a:
      push_new(Kind::kInteger, long_number(number<uint8_t>()));
      return;
    case 0x8b:
      push_new(Kind::kInteger, long_number(number<uint32_t>()));
      return;
    case 'G':
      take(8), push_new(Kind::kReal);
      return;
    case 'U':
    case 'C':
    case 0x8c:
      push_new(Kind::kText, 0, std::string(take(number<uint8_t>())));
      return;
    case 'T':
    case 'B':
    case 'X':
      push_new(Kind::kText, 0, std::string(take(number<uint32_t>())));
      return;
    case 0x8d:
    case 0x8e:
      push_new(Kind::kText, 0, std::string(take(number<uint64_t>())));
      return;
    case '}':
      push_new(Kind::kDict);
      return;
    case ']':
    case 0x8f:
      push_new(Kind::kList);
      return;  // EMPTY_SET too: nothing here needs to tell them apart
    case ')':
      push_new(Kind::kTuple);
      return;
    case 't':
      push_new(Kind::kTuple, 0, {}, pop_to_mark());
      return;
    case 'l':
    case 0x91:
      push_new(Kind::kList, 0, {}, pop_to_mark());
      return;
    case 0x85:
      push_new(Kind::kTuple, 0, {}, pop_several(1));
      return;
    case 0x86:
      push_new(Kind::kTuple, 0, {}, pop_several(2));
      return;
    case 0x87:
      push_new(Kind::kTuple, 0, {}, pop_several(3));
      return;
    case 'a': {  // APPEND
      const auto items = pop_several(1);
      return extend(Kind::kList, items);
    }
    case 'e':
    case 0x90: {  // APPENDS, ADDITEMS
      const auto items = pop_to_mark();
      return extend(Kind::kList, items);
    }
    case 's': {  // SETITEM
      const auto items = pop_several(2);
      return extend(Kind::kDict, items);
    }
    case 'u': {  // SETITEMS
      const auto items = pop_to_mark();
      return extend(Kind::kDict, items);
    }
    case 'c': {  // GLOBAL
      const std::string module = line(), name = line();
      return push_global(module, name);
    }
    case 0x93: {  // STACK_GLOBAL
      const auto names = pop_several(2);
      return push_global(value(names[0]).text, value(names[1]).text);
    }
    case 'R':
      call();
      return;
    case 0x81: {  // NEWOBJ
      const auto items = pop_several(2);
      return push_new(Kind::kObject, 0, read_name(items[0]));
    }
    case 'b':
      pop();
      top();
      return;  // BUILD: attributes, such as an OrderedDict's _metadata
    case 'q':
      remember(number<uint8_t>());
      return;
    case 'r':
      remember(number<uint32_t>());
      return;
    case 0x94:
      remember(static_cast<uint32_t>(memo_.size()));
      return;
    case 'h':
      recall(number<uint8_t>());
      return;
    case 'j':
      recall(number<uint32_t>());
      return;
    case 'Q': {  // BINPERSID
      const uint32_t id = pop();
      return push_new(Kind::kStorage, 0, {}, copy_items(id));
    }
    default:
      damaged(cat("the unknown instruction ", int{code}));
  }
}

}  // namespace

Pickle parse_pickle(std::string_view bytes, const std::string& path) { return PickleMachine(bytes, path).run(); }

}  // namespace sparsight
