// SubModel: where, among the leaves of its part of the key space, a key is.
//
// Its input is the fraction that the top model's prediction has left over (top_model.h), its output a position in units
// of leaves: a key of logical leaf l should give a number in [l, l + 1). Training finds the line with the least maximal
// error over the *fences* of the leaves, so that the bounds hold for every key a leaf covers, present or absent, at the
// borders of the sub-model as well: this is the paper's data augmentation (section 5.2.3), taken to its end.
//
//   first leaf to READ = floor(line(x) - under)        last = floor(line(x) + over)
//
// A perfect model has no errors and reads one leaf per lookup; otherwise it is about 1 + under + over.
//
// Within a leaf that had n keys in training, the key of slot s should give a number in [l + s / n, l + (s + 1) / n).
// How far the present keys are off that is `spread`: the lines to READ for one of them (Slots).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace gannet::index::xstore {

// Errors are stored in one byte: 0, or (8 + 3 bits) * 2^(5 bits) / 1024 leaves, rounded up.
double DecodeError(uint8_t code);
uint8_t EncodeError(double error);

// What a client's cache takes for one, without its table: the paper's 14 bytes, and where the table is. (The spread
// takes a byte of the size's four.)
inline constexpr size_t kCachedSubModelBytes = 18;

struct SubModel {
  float slope = 0;  // leaves per unit of x
  float intercept = 0;
  uint8_t under = 0;
  uint8_t over = 0;
  uint8_t spread = 0;
  uint32_t size = 0;  // entries of its translation table; 0: not there yet

  friend bool operator==(const SubModel&, const SubModel&) = default;

  struct Range {
    uint32_t first;
    uint32_t last;
  };

  // Rounds the same way wherever it is called; the fused form leaves no choice to the compiler.
  double Line(double x) const { return std::fma(static_cast<double>(slope), x, static_cast<double>(intercept)); }
  Range Predict(double x) const {
    const double position = Line(x);
    return {Clamp(position - DecodeError(under)), Clamp(position + DecodeError(over))};
  }

  // Where a key of logical leaf `leaf`, which had `count` keys in training, then was: slots first .. last; none of them
  // if last < first.
  struct Slots {
    int first;
    int last;
  };
  Slots PredictSlots(double x, uint32_t leaf, uint32_t count) const {
    const double at = Line(x) - leaf;
    const double error = DecodeError(spread);
    const double low = (at - error) * count;
    const double high = (at + error) * count;
    const auto slots = static_cast<int>(count);
    return {low > 0 ? low < slots ? static_cast<int>(low) : slots : 0,
            high >= 0 ? high < slots ? static_cast<int>(high) : slots - 1 : -1};
  }

 private:
  uint32_t Clamp(double position) const {
    if (!(position > 0)) return 0;
    return position < size ? static_cast<uint32_t>(position) : size - 1;
  }
};

// The input range of one leaf: of its low and its high fence, cut to the sub-model's own part of the key space.
struct LeafSpan {
  double low;
  double high;
};

// Spans in order; at least one.
SubModel TrainSubModel(std::span<const LeafSpan> leaves);

// How good a model is, summed over the leaves.
struct Quality {
  float lookup_leaves = 0;  // leaves that a lookup READs, averaged over the leaf's span
  float error = 0;          // distance between the predicted and the real middle of the leaf, in leaves
  // The error as XStore counts it (OSDI'20; its published code, which averages this over its sub-models), once for the
  // model: the width of [min_err, max_err] over the keys. Positions are leaf * slots + slot, and a prediction within
  // the right leaf has no error.
  float range = 0;
};
Quality Judge(const SubModel& model, std::span<const LeafSpan> leaves);

}  // namespace gannet::index::xstore
