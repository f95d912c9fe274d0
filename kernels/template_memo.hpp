// What a template's lines gave on cells met before, so that each name is made and looked up once.
//
// The name that a line gives at position t depends on the texts of its cells alone. Cells are
// numbered by their texts, and tuples of cells by pairs of numbers: (a, b, c) is ((a, b), c). Lines
// that look at the same cells relative to each other, such as %x[-1,1]/%x[0,1] and
// %x[0,1]/%x[1,1], share a *shape*: a tuple is found once at each place s of the sequence, and a
// line that is shifted by o reads at t what stands at s = t + o.
//
//   tuple  = find(tuple of the shape's first cells, last cell)       one step in a table
//   id     = values[tuple + k]                                       k: the line's number in its shape
//
// The number of a cell or tuple is where its values begin, one for each line of its shape.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary.hpp"

namespace chordal {

// Ids by place; a place is what cells and tuples are numbered by.
class MemoValues {
public:
    static constexpr std::int32_t kUnknown = -2, kAbsent = -1;

    // Room for the ids of some lines; at least one place, to have a number.
    std::uint32_t allocate(std::size_t lines) {
        const auto place = static_cast<std::uint32_t>(values_.size());
        values_.resize(values_.size() + (lines > 0 ? lines : 1), kUnknown);
        return place;
    }
    std::int32_t& operator[](std::uint32_t place) { return values_[place]; }
    std::size_t size() const { return values_.size(); }
    void clear() { values_.clear(); }

private:
    std::vector<std::int32_t> values_;
};

// Slots of an open-addressing table, a power of two, at most half of them used.
template <class Slot>
class Slots {
public:
    Slots() { clear(); }
    void clear() {
        slots_.assign(64, Slot{});
        used_ = 0;
    }
    // The slot that fits, or the free one where it belongs; free slots have place kFree.
    template <class Fits>
    Slot& find(std::uint64_t hash, Fits fits) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t k = hash & mask;
        while (slots_[k].place != Slot::kFree && !fits(slots_[k])) k = (k + 1) & mask;
        return slots_[k];
    }
    // To be called after a free slot was filled; slots move.
    template <class Hash>
    void filled(Hash hash) {
        if (2 * ++used_ < slots_.size()) return;
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.place != Slot::kFree)
                find(hash(slot), [](const Slot&) { return false; }) = slot;
    }

private:
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

// Texts of one column's cells.
class CellTable {
public:
    // The cell's place; one that is new gets room for so many lines.
    std::uint32_t find(std::string_view text, std::size_t lines, MemoValues& values) {
        const std::uint64_t hash = keyed_hash(text.data(), text.size());
        Slot& slot = slots_.find(hash, [&](const Slot& s) {
            return s.hash == hash && s.size == text.size() &&
                   std::memcmp(bytes_.data() + s.begin, text.data(), text.size()) == 0;
        });
        if (slot.place != Slot::kFree) return slot.place;
        const std::uint32_t place = values.allocate(lines);
        slot = {hash, bytes_.size(), text.size(), place};
        bytes_ += text;
        slots_.filled([](const Slot& s) { return s.hash; });
        return place;
    }
    void clear() {
        slots_.clear();
        bytes_.clear();
    }

private:
    struct Slot {
        static constexpr std::uint32_t kFree = 0xFFFFFFFFu;
        std::uint64_t hash = 0;
        std::size_t begin = 0, size = 0;  // of its text in bytes_
        std::uint32_t place = kFree;
    };
    Slots<Slot> slots_;
    std::string bytes_;
};

// Tuples of one shape: (tuple of the first cells, last cell).
class TupleTable {
public:
    std::uint32_t find(std::uint32_t first, std::uint32_t last, std::size_t lines,
                       MemoValues& values) {
        const std::uint64_t key = std::uint64_t{first} << 32 | last;
        Slot& slot = slots_.find(hash_of(key), [&](const Slot& s) { return s.key == key; });
        if (slot.place != Slot::kFree) return slot.place;
        const std::uint32_t place = values.allocate(lines);
        slot = {key, place};
        slots_.filled([](const Slot& s) { return hash_of(s.key); });
        return place;
    }
    void clear() { slots_.clear(); }

private:
    struct Slot {
        static constexpr std::uint32_t kFree = 0xFFFFFFFFu;
        std::uint64_t key = 0;
        std::uint32_t place = kFree;
    };
    static std::uint64_t hash_of(std::uint64_t key) {
        key *= 0x9E3779B97F4A7C15ull;
        return key ^ key >> 32;
    }
    Slots<Slot> slots_;
};

}  // namespace chordal
