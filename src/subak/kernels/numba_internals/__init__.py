"""Everything that touches private parts of Numba: faster compilation, and kernels kept between processes.

`SUBAK_KERNELS=plain` does without (kernels/switch.py), and so does a Numba in which one of these parts has moved. What
Numba would have to offer in public for each part to go:

- *compiler.py, dispatch.py*: a function that only others call, linked once into them and not turned into machine code
  by itself; a caller's bounds checks handed on to what it calls; one compiled function for integers of every width; a
  way to pass a tuple of arrays as one value; symbols whose length does not grow with the types of the arguments; no
  reference counts where nothing is allocated (`_nrt`).
- *indices.py*: an option by which an index is a place, so that none is looked at for being negative.
- *cache.py, key.py*: a cache whose key its user computes, so that an edit in another file is seen; the text of a type
  that is the same in every process.
- *addresses.py, calls.py*: a tuple of arrays by its address, read where it is used; a call of a function by its
  address. Both are made of Numba's low-level extension interface, of which `make_array`, `populate_array`,
  `AttributeTemplate` and `Conversion` are no documented parts.
- *interrupts.py*: signals that do not fall into a callback from LLVM, where what they raise is lost.
"""
