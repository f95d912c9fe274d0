// Interning of attribute names: Python's nested lists and dicts in, flat arrays of ids out.
//
// A token is a dict, list, tuple or set. As in CRFsuite, a string in a list is an attribute of
// value 1; in a dict {"word": "Paris"} is the attribute "word:Paris" of value 1, {"len": 5.0} is
// "len" of value 5, {"upper": True} is "upper" of value 1, and containers nest: {"a": {"b": 2.0}}
// is "a:b" of value 2. A value of zero adds nothing and is dropped.
//
// Names are kept one after another in one block of bytes (UTF-8, lone surrogates included) and
// found through an open-addressing table of (tag, id). What takes time is cache misses: strings are
// fetched a token ahead, and names are looked up by the hundred, in passes (hash, slot, offset,
// bytes) that each fetch what the next one reads.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "binding.hpp"
#include "simd.hpp"

namespace chordal {
namespace {

// Multiply and fold, eight bytes at a time.
std::uint64_t hash_bytes(const char* text, std::size_t size) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ull;
    std::uint64_t h = size * kFactor;
    while (size >= 8) {
        std::uint64_t word;
        std::memcpy(&word, text, 8);
        h = (h ^ word) * kFactor;
        h ^= h >> 29;
        text += 8;
        size -= 8;
    }
    if (size > 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, text, size);
        h = (h ^ word) * kFactor;
        h ^= h >> 29;
    }
    h *= kFactor;
    return h ^ (h >> 32);
}

// Appends s as UTF-8; surrogates become their three bytes, so that any str has its own name.
void append_utf8(PyObject* s, std::string& out) {
    const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(s));
    const void* data = PyUnicode_DATA(s);
    if (PyUnicode_IS_ASCII(s)) {
        out.append(static_cast<const char*>(data), length);
        return;
    }
    const auto kind = PyUnicode_KIND(s);
    for (std::size_t i = 0; i < length; ++i) {
        const Py_UCS4 c = PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i));
        if (c < 0x80) {
            out.push_back(static_cast<char>(c));
        } else if (c < 0x800) {
            out.push_back(static_cast<char>(0xC0 | (c >> 6)));
            out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
        } else if (c < 0x10000) {
            out.push_back(static_cast<char>(0xE0 | (c >> 12)));
            out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
            out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
        } else {
            out.push_back(static_cast<char>(0xF0 | (c >> 18)));
            out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
            out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
            out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
        }
    }
}

class Vocabulary {
public:
    static constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;

    Vocabulary() : slots_(16, Slot{0, kAbsent}), offsets_(1, 0) {}

    std::size_t size() const { return offsets_.size() - 1; }

    // Three steps ahead of `find`: where the name's slot, its offset and its bytes should be.
    void prefetch_slot(std::uint64_t hash) const {
        CHORDAL_PREFETCH(&slots_[hash & (slots_.size() - 1)]);
    }
    void prefetch_offset(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (slots_.size() - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(&offsets_[slot.id]);
    }
    void prefetch_bytes(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (slots_.size() - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(bytes_.data() + offsets_[slot.id]);
    }

    std::uint32_t find(const char* text, std::size_t length, std::uint64_t hash) const {
        return slots_[slot_of(text, length, hash)].id;
    }
    std::uint32_t intern(const char* text, std::size_t length, std::uint64_t hash) {
        std::size_t k = slot_of(text, length, hash);
        if (slots_[k].id != kAbsent) return slots_[k].id;
        if (4 * (size() + 1) > 3 * slots_.size()) {
            grow();
            k = slot_of(text, length, hash);
        }
        if (size() >= 0x7FFFFFFFu) throw nb::value_error("more than 2147483647 attributes");
        const auto id = static_cast<std::uint32_t>(size());
        slots_[k] = Slot{tag_of(hash), id};
        bytes_.insert(bytes_.end(), text, text + length);
        offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
        return id;
    }
    // Gives back memory kept for growth.
    void shrink() {
        bytes_.shrink_to_fit();
        offsets_.shrink_to_fit();
    }
    const char* text(std::size_t id) const { return bytes_.data() + offsets_[id]; }
    std::size_t length(std::size_t id) const {
        return static_cast<std::size_t>(offsets_[id + 1] - offsets_[id]);
    }
    const std::vector<char>& bytes() const { return bytes_; }
    const std::vector<std::int64_t>& offsets() const { return offsets_; }

private:
    struct Slot {
        std::uint32_t tag, id;
    };
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

    std::size_t slot_of(const char* text, std::size_t length, std::uint64_t hash) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t k = hash & mask;
        while (slots_[k].id != kAbsent) {
            const std::uint32_t id = slots_[k].id;
            if (slots_[k].tag == tag_of(hash) && this->length(id) == length &&
                std::memcmp(this->text(id), text, length) == 0)
                return k;
            k = (k + 1) & mask;
        }
        return k;
    }
    void grow() {
        std::vector<Slot> bigger(2 * slots_.size(), Slot{0, kAbsent});
        const std::size_t mask = bigger.size() - 1;
        for (std::size_t id = 0; id < size(); ++id) {
            const std::uint64_t hash = hash_bytes(text(id), length(id));
            std::size_t k = hash & mask;
            while (bigger[k].id != kAbsent) k = (k + 1) & mask;
            bigger[k] = Slot{tag_of(hash), static_cast<std::uint32_t>(id)};
        }
        slots_.swap(bigger);
    }

    std::vector<Slot> slots_;
    std::vector<char> bytes_;
    std::vector<std::int64_t> offsets_;
};

// Walks Python's containers; holds the GIL throughout.
class Reader {
public:
    Reader(Vocabulary& vocabulary, bool grow) : vocabulary_(vocabulary), grow_(grow) {}

    void batch(nb::handle X) {
        const nb::object all = listed(X, "X", "a list of sequences");
        const auto n = PySequence_Fast_GET_SIZE(all.ptr());
        for (sequence_ = 0; sequence_ < n; ++sequence_) {
            position_ = -1;
            if ((sequence_ & 1023) == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
            const nb::object tokens =
                listed(PySequence_Fast_GET_ITEM(all.ptr(), sequence_), "", "a list of tokens");
            const auto length = PySequence_Fast_GET_SIZE(tokens.ptr());
            for (position_ = 0; position_ < length; ++position_) {
                if (position_ + 1 < length)
                    prefetch(PySequence_Fast_GET_ITEM(tokens.ptr(), position_ + 1));
                token(PySequence_Fast_GET_ITEM(tokens.ptr(), position_));
            }
            lengths.push_back(length);
        }
        look_up();
    }

    std::vector<std::int32_t> ids;
    std::vector<double> values;  // empty while every value is 1
    std::vector<std::int64_t> row_offsets{0};
    std::vector<std::int64_t> lengths;

private:
    struct Name {
        std::size_t begin, size;
        double value;
        std::uint64_t hash;
    };

    std::string where() const {
        std::string text = "X[" + std::to_string(sequence_) + "]";
        if (position_ >= 0) text += "[" + std::to_string(position_) + "]";
        return text;
    }
    static std::string type_of(nb::handle x) { return Py_TYPE(x.ptr())->tp_name; }

    [[noreturn]] void refuse_type(const std::string& message) const {
        throw nb::type_error(message.c_str());
    }

    nb::object listed(nb::handle x, const char* name, const char* expected) const {
        const bool text = PyUnicode_Check(x.ptr()) || PyBytes_Check(x.ptr());
        PyObject* list = text || PyDict_Check(x.ptr()) ? nullptr : PySequence_Fast(x.ptr(), "");
        if (!list) {
            PyErr_Clear();
            refuse_type((*name ? std::string(name) : where()) + " must be " + expected + ", got " +
                        type_of(x));
        }
        return nb::steal(list);
    }

    // Fetches the strings of a list, which are read next.
    static void prefetch(PyObject* item) {
        if (!PyList_CheckExact(item)) return;
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(item); ++k)
            CHORDAL_PREFETCH(PyList_GET_ITEM(item, k));
    }

    void token(nb::handle item) {
        prefix_.clear();
        depth_ = 0;
        if (PyUnicode_Check(item.ptr()))
            refuse_type(where() + " is a str; a token must be a dict or a list of attribute "
                        "strings: write [\"...\"] for a token with one attribute");
        container(item);
        ends_.push_back(names_.size());
        if (names_.size() >= kTogether) look_up();
    }

    // Names to ids, for the tokens read since the last time.
    void look_up() {
        for (Name& name : names_) {
            name.hash = hash_bytes(text_.data() + name.begin, name.size);
            vocabulary_.prefetch_slot(name.hash);
        }
        for (const Name& name : names_) vocabulary_.prefetch_offset(name.hash);
        for (const Name& name : names_) vocabulary_.prefetch_bytes(name.hash);
        std::size_t k = 0;
        for (const std::size_t end : ends_) {
            for (; k < end; ++k) add(names_[k]);
            row_offsets.push_back(static_cast<std::int64_t>(ids.size()));
        }
        text_.clear();
        names_.clear();
        ends_.clear();
    }

    void add(const Name& name) {
        const char* text = text_.data() + name.begin;
        const std::uint32_t id = grow_ ? vocabulary_.intern(text, name.size, name.hash)
                                       : vocabulary_.find(text, name.size, name.hash);
        if (id == Vocabulary::kAbsent) return;
        if (name.value != 1.0 && values.empty()) values.assign(ids.size(), 1.0);
        ids.push_back(static_cast<std::int32_t>(id));
        if (!values.empty() || name.value != 1.0) values.push_back(name.value);
    }

    void container(nb::handle item) {
        if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr())) {
            const nb::object all = nb::steal(PySequence_Fast(item.ptr(), ""));
            for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(all.ptr()); ++k)
                attribute(PySequence_Fast_GET_ITEM(all.ptr(), k));
        } else if (PyDict_Check(item.ptr())) {
            mapping(item);
        } else if (PyAnySet_Check(item.ptr())) {  // sorted: a set's own order changes between runs
            for (nb::handle name : item)
                if (!PyUnicode_Check(name.ptr())) refuse_name(name);
            const nb::object all = nb::steal(PySequence_List(item.ptr()));
            if (!all.is_valid() || PyList_Sort(all.ptr()) != 0) throw nb::python_error();
            for (nb::handle name : all) attribute(name);
        } else {
            refuse_type(where() + " must be a dict, list, tuple or set of attributes, got " +
                        type_of(item));
        }
    }

    [[noreturn]] void refuse_name(nb::handle name) const {
        refuse_type("attribute names must be str, got " + type_of(name) + " in " + where());
    }

    void attribute(nb::handle name) {
        if (!PyUnicode_Check(name.ptr())) refuse_name(name);
        const std::size_t begin = text_.size();
        text_ += prefix_;
        append_utf8(name.ptr(), text_);
        names_.push_back({begin, text_.size() - begin, 1.0, 0});
    }

    void mapping(nb::handle item) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        const nb::object copy = nb::steal(PyDict_Copy(item.ptr()));  // float() may run any code
        while (PyDict_Next(copy.ptr(), &at, &key, &value)) {
            if (!PyUnicode_Check(key)) refuse_name(key);
            const std::size_t begin_of_prefix = prefix_.size();
            if (PyUnicode_Check(value)) {
                const std::size_t begin = text_.size();
                text_ += prefix_;
                append_utf8(key, text_);
                text_.push_back(':');
                append_utf8(value, text_);
                names_.push_back({begin, text_.size() - begin, 1.0, 0});
            } else if (PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value) ||
                       PyAnySet_Check(value)) {
                append_utf8(key, prefix_);
                prefix_.push_back(':');
                if (++depth_ > 100) throw nb::value_error((where() + " is nested too deeply").c_str());
                container(value);
                --depth_;
                prefix_.resize(begin_of_prefix);
            } else {
                const double number = number_of(key, value);
                if (number == 0.0) continue;
                const std::size_t begin = text_.size();
                text_ += prefix_;
                append_utf8(key, text_);
                names_.push_back({begin, text_.size() - begin, number, 0});
            }
        }
    }

    double number_of(nb::handle key, nb::handle value) const {
        const bool numeric = PyNumber_Check(value.ptr()) && !PyComplex_Check(value.ptr());
        const double number = numeric ? PyFloat_AsDouble(value.ptr()) : -1.0;
        if (!numeric || (number == -1.0 && PyErr_Occurred())) {
            PyErr_Clear();
            refuse_type("the value of attribute " + nb::cast<std::string>(nb::repr(key)) + " in " +
                        where() + " must be a str, a number, a bool or a container, got " +
                        type_of(value));
        }
        if (!std::isfinite(number))
            throw nb::value_error(("the value of attribute " +
                                   nb::cast<std::string>(nb::repr(key)) + " in " + where() +
                                   " must be finite, got " + std::to_string(number))
                                      .c_str());
        return number;
    }

    Vocabulary& vocabulary_;
    const bool grow_;
    Py_ssize_t sequence_ = 0, position_ = -1;
    int depth_ = 0;  // of nested containers
    static constexpr std::size_t kTogether = 256;
    std::string text_, prefix_;
    std::vector<Name> names_;
    std::vector<std::size_t> ends_;  // of the tokens among names_
};

nb::object decoded(const Vocabulary& vocabulary, std::size_t id) {
    PyObject* text =
        PyUnicode_DecodeUTF8(vocabulary.text(id), static_cast<Py_ssize_t>(vocabulary.length(id)),
                             "surrogatepass");
    if (!text) throw nb::python_error();
    return nb::steal(text);
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<Vocabulary>(m, "Vocabulary", "Attribute names and their ids, in order of meeting.")
        .def(nb::init<>())
        .def("__len__", &Vocabulary::size)
        .def(
            "read",
            [](Vocabulary& self, nb::handle X, bool grow) {
                Reader reader(self, grow);
                reader.batch(X);
                if (grow) self.shrink();
                std::optional<decltype(array_of(std::move(reader.values)))> values;
                if (!reader.values.empty()) values = array_of(std::move(reader.values));
                return std::make_tuple(
                    array_of(std::move(reader.ids)), values,
                    array_of(std::move(reader.row_offsets)), array_of(std::move(reader.lengths)));
            },
            nb::arg("X"), nb::arg("grow"),
            "Ids, values (None if all are 1), offsets of tokens, lengths of sequences.")
        .def("find",
             [](const Vocabulary& self, nb::str name) {
                 std::string text;
                 append_utf8(name.ptr(), text);
                 const auto id = self.find(text.data(), text.size(), hash_bytes(text.data(), text.size()));
                 return id == Vocabulary::kAbsent ? std::int64_t{-1} : std::int64_t{id};
             },
             "The id of a name, or -1.")
        .def("name",
             [](const Vocabulary& self, std::size_t id) {
                 if (id >= self.size()) throw nb::index_error("no such attribute");
                 return decoded(self, id);
             })
        .def("names",
             [](const Vocabulary& self) {
                 nb::list names;
                 for (std::size_t id = 0; id < self.size(); ++id) names.append(decoded(self, id));
                 return names;
             })
        .def("arrays",
             [](const Vocabulary& self) {
                 std::vector<std::uint8_t> bytes(self.bytes().begin(), self.bytes().end());
                 std::vector<std::int64_t> offsets = self.offsets();
                 return std::make_tuple(array_of(std::move(bytes)), array_of(std::move(offsets)));
             },
             "All names as one array of bytes, and where each begins.")
        .def_static(
            "from_arrays",
            [](Input<std::uint8_t> bytes, Input<std::int64_t> offsets) {
                const std::size_t n = offsets.size();
                if (n == 0 || offsets.data()[0] != 0 ||
                    offsets.data()[n - 1] != static_cast<std::int64_t>(bytes.size()))
                    throw nb::value_error("offsets of names do not fit their bytes");
                for (std::size_t i = 1; i < n; ++i)
                    if (offsets.data()[i] < offsets.data()[i - 1])
                        throw nb::value_error("offsets of names must not decrease");
                auto vocabulary = std::make_unique<Vocabulary>();
                const auto* text = reinterpret_cast<const char*>(bytes.data());
                for (std::size_t i = 1; i < n; ++i) {
                    const char* begin = text + offsets.data()[i - 1];
                    const auto size = static_cast<std::size_t>(offsets.data()[i] - offsets.data()[i - 1]);
                    if (vocabulary->intern(begin, size, hash_bytes(begin, size)) != i - 1)
                        throw nb::value_error("an attribute name occurs twice");
                }
                return vocabulary;
            },
            "The inverse of arrays().");
});

}  // namespace chordal
