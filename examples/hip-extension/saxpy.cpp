// saxpy(a, x, y) returns [a * x[i] + y[i]]; raises RuntimeError with what HIP says where there is no GPU.
#include <Python.h>

#include <hip/hip_runtime.h>

#include <vector>

namespace {

__global__ void saxpy_kernel(int count, float a, const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}

hipError_t run(float a, const std::vector<float> &x, std::vector<float> &y) {
  const size_t size = x.size() * sizeof(float);
  float *gpu_x = nullptr, *gpu_y = nullptr;
  hipError_t error = hipMalloc(reinterpret_cast<void **>(&gpu_x), size);
  if (error == hipSuccess) error = hipMalloc(reinterpret_cast<void **>(&gpu_y), size);
  if (error == hipSuccess) error = hipMemcpy(gpu_x, x.data(), size, hipMemcpyHostToDevice);
  if (error == hipSuccess) error = hipMemcpy(gpu_y, y.data(), size, hipMemcpyHostToDevice);
  if (error == hipSuccess) {
    const int count = static_cast<int>(x.size());
    saxpy_kernel<<<(count + 255) / 256, 256>>>(count, a, gpu_x, gpu_y);
    error = hipGetLastError();
  }
  if (error == hipSuccess) error = hipMemcpy(y.data(), gpu_y, size, hipMemcpyDeviceToHost);
  (void)hipFree(gpu_x);
  (void)hipFree(gpu_y);
  return error;
}

bool read(PyObject *sequence, std::vector<float> &values) {
  PyObject *fast = PySequence_Fast(sequence, "saxpy takes two sequences of numbers");
  if (fast == nullptr) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) {
    values.push_back(static_cast<float>(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fast, i))));
  }
  Py_DECREF(fast);
  return PyErr_Occurred() == nullptr;
}

PyObject *saxpy(PyObject *, PyObject *arguments) {
  float a;
  PyObject *first, *second;
  std::vector<float> x, y;
  if (!PyArg_ParseTuple(arguments, "fOO", &a, &first, &second) || !read(first, x) || !read(second, y)) return nullptr;
  if (x.size() != y.size()) {
    PyErr_SetString(PyExc_ValueError, "saxpy takes two sequences of one length");
    return nullptr;
  }
  const hipError_t error = run(a, x, y);
  if (error != hipSuccess) {
    PyErr_SetString(PyExc_RuntimeError, hipGetErrorString(error));
    return nullptr;
  }
  PyObject *result = PyList_New(static_cast<Py_ssize_t>(y.size()));
  for (size_t i = 0; result != nullptr && i < y.size(); ++i) {
    PyList_SetItem(result, static_cast<Py_ssize_t>(i), PyFloat_FromDouble(y[i]));
  }
  return result;
}

PyMethodDef methods[] = {
    {"saxpy", saxpy, METH_VARARGS, "saxpy(a, x, y): a times x plus y, on the GPU."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_saxpy", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__saxpy() { return PyModule_Create(&module); }
