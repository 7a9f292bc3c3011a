#include "call.h"

#include <cstdarg>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "platform.h"

namespace sonant {

namespace {

constexpr int kSlots = 4;

struct Slots {
  void* data[kSlots] = {};
  size_t bytes[kSlots] = {};

  ~Slots() {
    for (void* p : data) free_aligned(p);
  }
};

thread_local Slots slots;

}  // namespace

void refuse(const char* format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  throw std::runtime_error(text);
}

void* scratch(int slot, size_t bytes) {
  Slots& s = slots;
  if (s.bytes[slot] < bytes) {
    free_aligned(s.data[slot]);
    s.data[slot] = nullptr;
    s.bytes[slot] = 0;
    s.data[slot] = allocate_aligned(bytes + bytes / 4);
    s.bytes[slot] = bytes + bytes / 4;
  }
  return s.data[slot];
}

}  // namespace sonant
