// A PJRT plugin without devices: enough for JAX to discover and load it and to ask it for a client, which it refuses
// with what the HIP runtime of the SDK's packages says.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <hip/hip_runtime.h>

namespace {

struct Error {
  char message[96];
  int code;
};

struct ErrorArgs {  // PJRT_Error_{Destroy,Message,GetCode}_Args share this head.
  size_t struct_size;
  void* extension;
  Error* error;
};

struct ErrorMessageArgs : ErrorArgs {
  const char* message;
  size_t message_size;
};

struct ErrorCodeArgs : ErrorArgs {
  int code;
};

struct AttributesArgs {
  size_t struct_size;
  void* extension;
  void* attributes;
  size_t count;
};

constexpr int kUnavailable = 14;

void DestroyError(ErrorArgs* args) { delete args->error; }

void ErrorMessage(ErrorMessageArgs* args) {
  args->message = args->error->message;
  args->message_size = std::strlen(args->error->message);
}

Error* ErrorCode(ErrorCodeArgs* args) {
  args->code = args->error->code;
  return nullptr;
}

Error* Initialize(void*) { return nullptr; }

Error* Attributes(AttributesArgs* args) {
  args->attributes = nullptr;
  args->count = 0;
  return nullptr;
}

Error* CreateClient(void*) {
  Error* error = new Error{{}, kUnavailable};
  int count = 0;
  std::snprintf(error->message, sizeof error->message, "example plugin: HIP says: %s",
                hipGetErrorString(hipGetDeviceCount(&count)));
  return error;
}

// The head of PJRT_Api up to PJRT_Client_Create, and no further: JAX skips what struct_size leaves out.
struct Api {
  size_t struct_size;
  void* extension;
  struct {
    size_t struct_size;
    void* extension;
    int major, minor;
  } version;
  void* entries[11];
};

Api MakeApi() {
  Api api = {};
  api.struct_size = sizeof(Api);
  api.version = {sizeof(api.version), nullptr, 0, 54};
  void* head[] = {
      reinterpret_cast<void*>(DestroyError), reinterpret_cast<void*>(ErrorMessage),
      reinterpret_cast<void*>(ErrorCode),    reinterpret_cast<void*>(Initialize),
      reinterpret_cast<void*>(Attributes),
      nullptr, nullptr, nullptr, nullptr, nullptr,  // events
      reinterpret_cast<void*>(CreateClient),
  };
  std::memcpy(api.entries, head, sizeof head);
  return api;
}

}  // namespace

extern "C" const Api* GetPjrtApi() {
  static const Api api = MakeApi();
  return &api;
}
