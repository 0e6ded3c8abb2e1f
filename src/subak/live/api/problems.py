"""Turns every error into a Problem with an HTTP status; unexpected ones are logged and not disclosed."""
import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from subak.errors import InputError
from subak.live.api.errors import (
    BY_STATUS,
    InvalidError,
    NotOwnerError,
    ServiceError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from subak.live.api.models import Problem

Handler = Callable[[Request[Any, Any, Any], Any], Response[Problem]]
INTERNAL = "something went wrong in the master; its log says what"
TYPE = "application/problem+json"
MISSING = re.compile(r"Missing required \w+ parameter '([^']+)'")
log = logging.getLogger(__name__)


def problem_of(error: ServiceError) -> Problem:
    """Return what is told of an error."""
    owner = error.owner if isinstance(error, NotOwnerError) else ""
    return Problem(code=error.code, words=error.words, field=error.field, owner=owner, details=error.details)


def headers_of(error: ServiceError) -> dict[str, str]:
    """Return the headers that belong to the status of an error."""
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": str(error.retry_after_s)} if isinstance(error, UnavailableError) else {}


def body_of(error: ServiceError) -> bytes:
    """Return the body of an answer."""
    return msgspec.json.encode(problem_of(error))


def _answer(error: ServiceError) -> Response[Problem]:
    return Response(problem_of(error), status_code=error.status, headers=headers_of(error), media_type=TYPE)


def _on_service_error(_: Request[Any, Any, Any], error: ServiceError) -> Response[Problem]:
    return _answer(error)


def _on_input_error(_: Request[Any, Any, Any], error: InputError) -> Response[Problem]:
    """Answer a text that breaks rules: each line of the error is one thing that is wrong."""
    lines = tuple(line for line in str(error).splitlines() if line) or ("invalid",)
    return _answer(InvalidError(lines[0], field="body", details=lines if len(lines) > 1 else ()))


def _on_http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """Answer what the framework refuses: an unknown route, an argument of a wrong form, a body that is too large."""
    if error.status_code >= TooLargeError.status and error.status_code not in BY_STATUS:
        log.error("%s: %s", error.status_code, error.detail)
        return _answer(ServiceError(INTERNAL))
    kind = BY_STATUS.get(error.status_code, InvalidError)
    missing = MISSING.match(error.detail)
    if missing:
        return _answer(kind(f"{missing[1]}: must be given", field=missing[1]))
    first = next((each for each in error.extra or () if isinstance(each, dict)), {})
    field = str(first.get("key", "")).rstrip("_")  # an argument whose name is the framework's ends with one
    return _answer(kind(f"{field}: {first.get('message', '')}" if field else error.detail, field=field))


def _on_anything(_: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    log.error("a request failed", exc_info=error)
    return _answer(ServiceError(INTERNAL))


HANDLERS: dict[int | type[Exception], Any] = {
    ServiceError: _on_service_error, InputError: _on_input_error, HTTPException: _on_http_error,
    Exception: _on_anything,
}
