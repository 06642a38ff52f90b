"""What Python and the emulator pass each other: the structures of emulated.h and runtime.h."""

from __future__ import annotations

import ctypes


class Parameter(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_int),
        ("pointer", ctypes.c_int),
        ("element", ctypes.c_int),
        ("kind", ctypes.c_char),
    ]


class Signature(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p),
        ("max_threads", ctypes.c_int),
        ("count", ctypes.c_int),
        ("parameters", ctypes.POINTER(Parameter)),
    ]


class Region(ctypes.Structure):
    _fields_ = [
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("writable", ctypes.c_int32),
        ("name", ctypes.c_char_p),
    ]


class Variable(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("shared", ctypes.c_int32),
        ("name", ctypes.c_char_p),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("signature", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("regions", ctypes.POINTER(Region)),
        ("variables", ctypes.POINTER(Variable)),
        ("region_count", ctypes.c_int32),
        ("variable_count", ctypes.c_int32),
        ("chosen", ctypes.POINTER(ctypes.c_uint32)),
        ("chosen_count", ctypes.c_uint64),
    ]


class Report(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_char * 32),
        ("message", ctypes.c_char * 1024),
        ("here", ctypes.c_uint64),
        ("there", ctypes.c_uint64),
        ("here_line", ctypes.c_int32),
        ("there_line", ctypes.c_int32),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
    ]
