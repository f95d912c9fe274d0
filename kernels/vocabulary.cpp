// Interning of attribute names: Python's nested lists and dicts in, flat arrays of ids out.
//
// A token is a dict, list, tuple or set. As in CRFsuite, a string in a list is an attribute of
// value 1; in a dict {"word": "Paris"} is the attribute "word:Paris" of value 1, {"len": 5.0} is
// "len" of value 5, {"upper": True} is "upper" of value 1, and containers nest: {"a": {"b": 2.0}}
// is "a:b" of value 2. A value of zero adds nothing and is dropped.
// Strings are fetched a token ahead, since what takes time is cache misses.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "utf8.hpp"
#include "vocabulary.hpp"

namespace chordal {
namespace {

void append_utf8(PyObject* s, std::string& out) {
    const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(s));
    const void* data = PyUnicode_DATA(s);
    if (PyUnicode_IS_ASCII(s)) {
        out.append(static_cast<const char*>(data), length);
        return;
    }
    const auto kind = PyUnicode_KIND(s);
    for (std::size_t i = 0; i < length; ++i)
        chordal::append_utf8(PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i)), out);
}

// Walks Python's containers; holds the GIL throughout.
class Reader {
public:
    Reader(Vocabulary& vocabulary, bool grow) : names(vocabulary, grow) {}

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
        names.look_up();
    }

    Names names;
    std::vector<std::int64_t> lengths;

private:
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
        names.end_row();
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
        names.text() += prefix_;
        append_utf8(name.ptr(), names.text());
        names.finish();
    }

    void mapping(nb::handle item) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        const nb::object copy = nb::steal(PyDict_Copy(item.ptr()));  // float() may run any code
        while (PyDict_Next(copy.ptr(), &at, &key, &value)) {
            if (!PyUnicode_Check(key)) refuse_name(key);
            const std::size_t begin_of_prefix = prefix_.size();
            if (PyUnicode_Check(value)) {
                names.text() += prefix_;
                append_utf8(key, names.text());
                names.text().push_back(':');
                append_utf8(value, names.text());
                names.finish();
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
                names.text() += prefix_;
                append_utf8(key, names.text());
                names.finish(number);
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

    Py_ssize_t sequence_ = 0, position_ = -1;
    int depth_ = 0;  // of nested containers
    std::string prefix_;
};

// Appends an attribute of CRFsuite's items: a backslash before a colon or another is left out.
void append_unescaped(std::string_view field, std::string& out) {
    for (std::size_t at; (at = field.find('\\')) != field.npos;) {
        out.append(field, 0, at);
        field.remove_prefix(at);
        if (field.size() > 1 && (field[1] == ':' || field[1] == '\\')) field.remove_prefix(1);
        out.push_back(field[0]);
        field.remove_prefix(1);
    }
    out += field;
}

void read_fields(const char* text, const std::uint32_t* fields, const double* values,
                 const Input<std::int64_t>& offsets, Names& names) {
    for (std::size_t row = 1; row < offsets.size(); ++row) {
        for (auto k = offsets.data()[row - 1]; k < offsets.data()[row]; ++k) {
            const std::string_view field{text + fields[2 * k], fields[2 * k + 1] - fields[2 * k]};
            const double value = values ? values[k] : 1.0;
            if (field.find('\\') == field.npos) {
                names.add(field, value);
            } else {
                append_unescaped(field, names.text());
                names.finish(value);
            }
        }
        names.end_row();
    }
    names.look_up();
}

// None if all are 1.
auto values_of(Names& names) {
    std::optional<decltype(array_of(std::move(names.values)))> values;
    if (!names.values.empty()) values = array_of(std::move(names.values));
    return values;
}

nb::str decoded(const Vocabulary& vocabulary, std::size_t id) {
    const auto length = static_cast<Py_ssize_t>(vocabulary.length(id));
    PyObject* text = PyUnicode_DecodeUTF8(vocabulary.text(id), length, "surrogatepass");
    if (!text) {  // a pattern that works on bytes may cut a character
        PyErr_Clear();
        text = PyUnicode_DecodeUTF8(vocabulary.text(id), length, "backslashreplace");
    }
    if (!text) throw nb::python_error();
    return nb::steal<nb::str>(text);
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
                Names& names = reader.names;
                return std::make_tuple(
                    array_of(std::move(names.ids)), values_of(names),
                    array_of(std::move(names.row_offsets)), array_of(std::move(reader.lengths)));
            },
            nb::arg("X"), nb::arg("grow"),
            "Ids, values (None if all are 1), offsets of tokens, lengths of sequences.")
        .def(
            "read_fields",
            [](Vocabulary& self, nb::bytes text, Input<std::uint32_t> fields,
               std::optional<Input<double>> values, Input<std::int64_t> offsets, bool grow) {
                Names names(self, grow);
                {
                    nb::gil_scoped_release release;
                    read_fields(text.c_str(), fields.data(), values ? values->data() : nullptr,
                                offsets, names);
                }
                if (grow) self.shrink();
                return std::make_tuple(array_of(std::move(names.ids)), values_of(names),
                                       array_of(std::move(names.row_offsets)));
            },
            nb::arg("text"), nb::arg("fields"), nb::arg("values").none(), nb::arg("offsets"),
            nb::arg("grow"), "Ids, values (None if all are 1) and offsets of rows of items_read.")
        .def("find",
             [](const Vocabulary& self, nb::str name) {
                 std::string text;
                 append_utf8(name.ptr(), text);
                 const auto id = self.find(text.data(), text.size(), hash_bytes(text.data(), text.size()));
                 return id == Vocabulary::kAbsent ? std::int64_t{-1} : std::int64_t{id};
             },
             nb::arg("name"), "The id of a name, or -1.")
        .def("name",
             [](const Vocabulary& self, std::size_t id) {
                 if (id >= self.size()) throw nb::index_error("no such attribute");
                 return decoded(self, id);
             },
             nb::arg("id"))
        .def("names",
             [](const Vocabulary& self) {
                 nb::typed<nb::list, nb::str> names;
                 for (std::size_t id = 0; id < self.size(); ++id) names.append(decoded(self, id));
                 return names;
             })
        .def("arrays",
             [](const Vocabulary& self) {
                 return std::make_tuple(array_of(self.bytes()), array_of(self.offsets()));
             },
             "All names as one array of bytes, and where each begins.")
        .def("slots", [](const Vocabulary& self) { return array_of(self.slots()); },
             "The table through which names are found, for `borrowed`.")
        .def_static(
            "borrowed",
            [](Input<std::uint8_t> bytes, Input<std::int64_t> offsets, Input<std::uint32_t> slots) {
                return std::make_unique<Vocabulary>(bytes, offsets, slots);
            },
            nb::arg("bytes"), nb::arg("offsets"), nb::arg("slots"),
            "A vocabulary that reads these arrays where they are.")
        .def_static(
            "from_arrays",
            [](Input<std::uint8_t> bytes, Input<std::int64_t> offsets) {
                Vocabulary::check_offsets(bytes, offsets);
                auto vocabulary = std::make_unique<Vocabulary>();
                const auto* text = reinterpret_cast<const char*>(bytes.data());
                for (std::size_t i = 1; i < offsets.size(); ++i) {
                    const char* begin = text + offsets.data()[i - 1];
                    const auto size = static_cast<std::size_t>(offsets.data()[i] - offsets.data()[i - 1]);
                    if (vocabulary->intern(begin, size, hash_bytes(begin, size)) != i - 1)
                        throw nb::value_error("an attribute name occurs twice");
                }
                return vocabulary;
            },
            nb::arg("bytes"), nb::arg("offsets"), "The inverse of arrays().");
});

}  // namespace chordal
