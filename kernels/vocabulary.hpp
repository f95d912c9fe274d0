// Names and their ids: an open-addressing table over one block of bytes.
//
// Names are kept one after another (UTF-8) and found through slots of (tag, id), where the tag is
// a part of the hash. What takes time is cache misses: names are looked up by the hundred, in passes
// (hash, slot, offset, bytes) that each fetch what the next one reads.
//
// The three arrays may be borrowed, from a memory-mapped file for instance; the first new name
// copies them.
#pragma once

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "binding.hpp"
#include "simd.hpp"

namespace chordal {

// The last 1 to 7 bytes of a text as a word, the rest zero; without a call, which memcpy of a size
// that is not known would be.
inline std::uint64_t last_word(const char* text, std::size_t size) {
    std::uint64_t word = 0;
    if constexpr (std::endian::native != std::endian::little) {
        std::memcpy(&word, text, size);
    } else if (size >= 4) {
        std::uint32_t first, last;  // they may overlap
        std::memcpy(&first, text, 4);
        std::memcpy(&last, text + size - 4, 4);
        word = first | std::uint64_t{last} << 8 * (size - 4);
    } else {
        for (const std::size_t k : {std::size_t{0}, size / 2, size - 1})
            word |= std::uint64_t{static_cast<unsigned char>(text[k])} << 8 * k;
    }
    return word;
}

// Multiply and fold, eight bytes at a time.
inline std::uint64_t hash_bytes(const char* text, std::size_t size) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ull;
    std::uint64_t h = size * kFactor, word;
    for (; size >= 8; text += 8, size -= 8) {
        std::memcpy(&word, text, 8);
        h = (h ^ word) * kFactor;
        h ^= h >> 29;
    }
    if (size > 0) {
        h = (h ^ last_word(text, size)) * kFactor;
        h ^= h >> 29;
    }
    h *= kFactor;
    return h ^ (h >> 32);
}

class Vocabulary {
public:
    static constexpr std::uint32_t kAbsent = 0xFFFFFFFFu;
    struct Slot {
        std::uint32_t tag, id;
    };

    Vocabulary() : own_slots_(16, Slot{0, kAbsent}), own_offsets_(1, 0) { look_at_own(); }
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;

    // Arrays that somebody else keeps, checked here: every id has one slot, and at least one slot
    // is free, without which a search would not end. That names are where their hashes say is
    // tried on some of them, since hashing all would take most of the time of opening a file.
    Vocabulary(Input<std::uint8_t> bytes, Input<std::int64_t> offsets, Input<std::uint32_t> slots)
        : owners_{nb::cast(bytes), nb::cast(offsets), nb::cast(slots)} {
        check_offsets(bytes, offsets);
        n_slots_ = slots.size() / 2;
        if (slots.size() % 2 != 0 || n_slots_ == 0 || (n_slots_ & (n_slots_ - 1)) != 0)
            throw nb::value_error("the number of slots of names must be a power of two");
        slots_ = reinterpret_cast<const Slot*>(slots.data());
        bytes_ = reinterpret_cast<const char*>(bytes.data());
        offsets_ = offsets.data();
        size_ = offsets.size() - 1;
        std::size_t used = 0;
        std::vector<bool> met(size_, false);
        for (std::size_t k = 0; k < n_slots_; ++k) {
            const std::uint32_t id = slots_[k].id;
            if (id == kAbsent) continue;
            if (id >= size_) throw nb::value_error("a slot of names is out of range");
            if (met[id]) throw nb::value_error("a name has two slots");
            met[id] = true;
            ++used;
        }
        bool good = used == size_ && used < n_slots_;
        const std::size_t step = size_ / 256 + 1;
        for (std::size_t id = 0; good && id < size_; id += step) {
            const std::uint64_t hash = hash_bytes(text(id), length(id));
            good = slots_[slot_of(text(id), length(id), hash)].id == id;
        }
        if (!good) throw nb::value_error("the slots of names do not fit the names");
    }

    static void check_offsets(const Input<std::uint8_t>& bytes,
                              const Input<std::int64_t>& offsets) {
        const std::size_t n = offsets.size();
        if (n == 0 || offsets.data()[0] != 0 ||
            offsets.data()[n - 1] != static_cast<std::int64_t>(bytes.size()))
            throw nb::value_error("offsets of names do not fit their bytes");
        for (std::size_t i = 1; i < n; ++i)
            if (offsets.data()[i] < offsets.data()[i - 1])
                throw nb::value_error("offsets of names must not decrease");
    }

    std::size_t size() const { return size_; }

    // Three steps ahead of `find`: where the name's slot, its offset and its bytes should be.
    void prefetch_slot(std::uint64_t hash) const {
        CHORDAL_PREFETCH(&slots_[hash & (n_slots_ - 1)]);
    }
    void prefetch_offset(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (n_slots_ - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(&offsets_[slot.id]);
    }
    void prefetch_bytes(std::uint64_t hash) const {
        const Slot& slot = slots_[hash & (n_slots_ - 1)];
        if (slot.id != kAbsent) CHORDAL_PREFETCH(bytes_ + offsets_[slot.id]);
    }

    std::uint32_t find(const char* text, std::size_t length, std::uint64_t hash) const {
        return slots_[slot_of(text, length, hash)].id;
    }
    // Throws std::length_error when ids run out.
    std::uint32_t intern(const char* text, std::size_t length, std::uint64_t hash) {
        std::size_t k = slot_of(text, length, hash);
        if (slots_[k].id != kAbsent) return slots_[k].id;
        if (!owners_.empty()) own();
        if (4 * (size_ + 1) > 3 * n_slots_) {
            grow();
            k = slot_of(text, length, hash);
        }
        if (size_ >= 0x7FFFFFFFu) throw std::length_error("more than 2147483647 attributes");
        const auto id = static_cast<std::uint32_t>(size_);
        own_slots_[k] = Slot{tag_of(hash), id};
        own_bytes_.insert(own_bytes_.end(), text, text + length);
        own_offsets_.push_back(static_cast<std::int64_t>(own_bytes_.size()));
        look_at_own();
        return id;
    }
    // Gives back memory kept for growth.
    void shrink() {
        own_bytes_.shrink_to_fit();
        own_offsets_.shrink_to_fit();
        if (owners_.empty()) look_at_own();
    }
    const char* text(std::size_t id) const { return bytes_ + offsets_[id]; }
    std::size_t length(std::size_t id) const {
        return static_cast<std::size_t>(offsets_[id + 1] - offsets_[id]);
    }
    std::vector<std::uint8_t> bytes() const { return {bytes_, bytes_ + offsets_[size_]}; }
    std::vector<std::int64_t> offsets() const { return {offsets_, offsets_ + size_ + 1}; }
    std::vector<std::uint32_t> slots() const {
        const auto* first = reinterpret_cast<const std::uint32_t*>(slots_);
        return {first, first + 2 * n_slots_};
    }

private:
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

    std::size_t slot_of(const char* text, std::size_t length, std::uint64_t hash) const {
        const std::size_t mask = n_slots_ - 1;
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
        std::vector<Slot> bigger(2 * n_slots_, Slot{0, kAbsent});
        const std::size_t mask = bigger.size() - 1;
        for (std::size_t id = 0; id < size_; ++id) {
            const std::uint64_t hash = hash_bytes(text(id), length(id));
            std::size_t k = hash & mask;
            while (bigger[k].id != kAbsent) k = (k + 1) & mask;
            bigger[k] = Slot{tag_of(hash), static_cast<std::uint32_t>(id)};
        }
        own_slots_.swap(bigger);
        look_at_own();
    }
    void own() {
        own_slots_.assign(slots_, slots_ + n_slots_);
        own_bytes_.assign(bytes_, bytes_ + offsets_[size_]);
        own_offsets_.assign(offsets_, offsets_ + size_ + 1);
        {
            const nb::gil_scoped_acquire gil;  // templates are read without it
            owners_.clear();
        }
        look_at_own();
    }
    void look_at_own() {
        slots_ = own_slots_.data();
        n_slots_ = own_slots_.size();
        bytes_ = own_bytes_.data();
        offsets_ = own_offsets_.data();
        size_ = own_offsets_.size() - 1;
    }

    const Slot* slots_;
    const char* bytes_;
    const std::int64_t* offsets_;
    std::size_t n_slots_, size_;
    std::vector<Slot> own_slots_;
    std::vector<char> own_bytes_;
    std::vector<std::int64_t> own_offsets_;
    std::vector<nb::object> owners_;  // of borrowed arrays
};

// Names that wait to be looked up together.
class NameBatch {
public:
    std::string text;  // append a name here, then `finish` it

    void finish() {
        names_.push_back({nullptr, begin_, text.size() - begin_, 0});
        begin_ = text.size();
    }
    // A name that stays where it is until then.
    void add(std::string_view name) { names_.push_back({name.data(), 0, name.size(), 0}); }
    std::size_t size() const { return names_.size(); }

    // Visits the id of each name in turn, kAbsent if it has none; the vocabulary may grow by them.
    template <class Visit>
    void look_up(Vocabulary& vocabulary, bool grow, Visit visit) {
        for (Name& name : names_) {
            if (!name.at) name.at = text.data() + name.begin;
            name.hash = hash_bytes(name.at, name.size);
            vocabulary.prefetch_slot(name.hash);
        }
        for (const Name& name : names_) vocabulary.prefetch_offset(name.hash);
        for (const Name& name : names_) vocabulary.prefetch_bytes(name.hash);
        for (const Name& name : names_)
            visit(grow ? vocabulary.intern(name.at, name.size, name.hash)
                       : vocabulary.find(name.at, name.size, name.hash));
        clear();
    }
    void clear() {
        text.clear();
        begin_ = 0;
        names_.clear();
    }

private:
    struct Name {
        const char* at;  // null: at `begin` of the text, which may still move
        std::size_t begin, size;
        std::uint64_t hash;
    };
    std::size_t begin_ = 0;
    std::vector<Name> names_;
};

// Rows of names on their way to ids. Unknown names are dropped unless the vocabulary may grow.
class Names {
public:
    Names(Vocabulary& vocabulary, bool grow) : vocabulary_(vocabulary), grow_(grow) {}

    std::vector<std::int32_t> ids;
    std::vector<double> values;  // empty while every value is 1
    std::vector<std::int64_t> row_offsets{0};

    std::string& text() { return batch_.text; }  // append a name here, then `finish` it
    void finish(double value = 1.0) {
        batch_.finish();
        waiting_.push_back(value);
    }
    // A name that stays where it is until it is looked up.
    void add(std::string_view name, double value) {
        batch_.add(name);
        waiting_.push_back(value);
    }
    void end_row() {
        ends_.push_back(batch_.size());
        if (batch_.size() >= kTogether) look_up();
    }
    // Forgets what was read; the memory is kept.
    void clear() {
        ids.clear();
        values.clear();
        row_offsets.assign(1, 0);
        batch_.clear();
        waiting_.clear();
        ends_.clear();
    }
    // To be called once more at the end.
    void look_up() {
        std::size_t k = 0;
        auto row = ends_.begin();
        batch_.look_up(vocabulary_, grow_, [&](std::uint32_t id) {
            for (; k == *row; ++row) end_ids();
            if (id != Vocabulary::kAbsent) take(id, waiting_[k]);
            ++k;
        });
        for (; row != ends_.end(); ++row) end_ids();
        waiting_.clear();
        ends_.clear();
    }

private:
    static constexpr std::size_t kTogether = 256;

    void end_ids() { row_offsets.push_back(static_cast<std::int64_t>(ids.size())); }
    void take(std::uint32_t id, double value) {
        if (value != 1.0 && values.empty()) values.assign(ids.size(), 1.0);
        ids.push_back(static_cast<std::int32_t>(id));
        if (!values.empty() || value != 1.0) values.push_back(value);
    }

    Vocabulary& vocabulary_;
    const bool grow_;
    NameBatch batch_;
    std::vector<double> waiting_;    // values of the names that wait
    std::vector<std::size_t> ends_;  // of the rows among them
};

}  // namespace chordal
