// An extension module that asks the HIP runtime of the SDK's packages for its devices.
#include <Python.h>

#include <hip/hip_runtime.h>

static PyObject *hip_status(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  int count = 0;
  return PyUnicode_FromString(hipGetErrorString(hipGetDeviceCount(&count)));
}

static PyMethodDef methods[] = {
    {"hip_status", hip_status, METH_NOARGS, "What HIP says when asked for devices."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_example", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__example(void) {
  PyObject *self = PyModule_Create(&module);
  if (self != NULL) {
    PyModule_AddStringConstant(self, "BUILT_FOR", BUILT_FOR);
  }
  return self;
}
