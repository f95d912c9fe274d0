// Interning of attribute names: Python's nested lists and dicts in, flat arrays of ids out.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "item_reader.hpp"

namespace chordal {
namespace {

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
                ItemReader reader(self, grow);
                reader.batch(X);
                if (grow) self.shrink();
                Names& names = reader.names;
                return std::make_tuple(
                    array_of(std::move(names.ids)), values_of(names),
                    array_of(std::move(names.row_offsets)), array_of(std::move(reader.lengths)),
                    vectors_of(reader.vectors));
            },
            nb::arg("X"), nb::arg("grow"),
            "Ids, values (None if all are 1), offsets of tokens, lengths of sequences; arrays among "
            "the attributes: name, tokens, numbers.")
        .def(
            "read_fields",
            [](Vocabulary& self, nb::bytes text, Input<std::uint32_t> fields,
               std::optional<Input<double>> values, Input<std::int64_t> offsets, bool grow) {
                Names names(self, grow);
                {
                    GilReleased release;
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
                 append_text(name.ptr(), text);
                 const auto id = self.find(text.data(), text.size(), self.hash(text.data(), text.size()));
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
                    if (vocabulary->intern(begin, size, keyed_hash(begin, size)) != i - 1)
                        throw nb::value_error("an attribute name occurs twice");
                }
                return vocabulary;
            },
            nb::arg("bytes"), nb::arg("offsets"), "The inverse of arrays().");
});

}  // namespace chordal
