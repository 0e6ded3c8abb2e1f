"""Errors of a federation that travel over HTTP: raised by the service, raised again by the client.

An exit code belongs to each, so that scripts can tell them apart.
"""
from subak import exit_codes
from subak.errors import InputError, SubakError
from subak.live.api.models import Code


class ServiceError(SubakError):
    """Base of what a service answers in place of what was asked for."""

    code: Code = "internal"
    status = 500
    exit_code = exit_codes.OTHERWISE

    def __init__(self, words: str, *, field: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.words, self.field, self.details = words, field, details


class InvalidError(ServiceError, InputError):
    """The request breaks a rule; *field* is the part of it that does."""

    code: Code = "invalid"
    status, exit_code = 400, exit_codes.MISTAKE


class UnauthorizedError(ServiceError):
    """No token was given, or it is none of this federation, has expired or was revoked."""

    code: Code = "unauthorized"
    status, exit_code = 401, exit_codes.WRONG_TOKEN


class ForbiddenError(ServiceError):
    """The role of whoever asks does not allow it."""

    code: Code = "forbidden"
    status, exit_code = 403, exit_codes.WRONG_TOKEN


class NotFoundError(ServiceError):
    """There is nothing of this name."""

    code: Code = "not-found"
    status, exit_code = 404, exit_codes.NOTHING_THERE


class NotAllowedError(ServiceError):
    """There is nothing under this path that could be done with this method."""

    code: Code = "not-allowed"
    status, exit_code = 405, exit_codes.MISTAKE


class RefusedError(ServiceError):
    """The request is well-formed, and cannot be carried out as things stand."""

    code: Code = "refused"
    status, exit_code = 409, exit_codes.EXIT_REFUSED


class TooLargeError(ServiceError):
    """The body of the request is larger than is read."""

    code: Code = "too-large"
    status, exit_code = 413, exit_codes.MISTAKE


class UnavailableError(ServiceError):
    """It cannot be done now, such as when the disk is full; after *retry_after_s* seconds it may be asked again."""

    code: Code = "unavailable"
    status, exit_code = 503, exit_codes.NOT_NOW

    def __init__(self, words: str, *, retry_after_s: int = 1, field: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(words, field=field, details=details)
        self.retry_after_s = retry_after_s


class LimitedError(UnavailableError):
    """Somebody asks too fast; after *retry_after_s* seconds it may be asked again."""

    code: Code = "limited"
    status = 429


class NotOwnerError(UnavailableError):
    """Another master keeps this; *owner* is the address at which it answers, empty while nobody does."""

    code: Code = "not-owner"

    def __init__(self, words: str, *, owner: str, retry_after_s: int = 1) -> None:
        super().__init__(words, retry_after_s=retry_after_s)
        self.owner = owner


BY_CODE: dict[Code, type[ServiceError]] = {each.code: each for each in (
    ServiceError, InvalidError, UnauthorizedError, ForbiddenError, NotFoundError, NotAllowedError, RefusedError,
    TooLargeError, UnavailableError, LimitedError, NotOwnerError,
)}
BY_STATUS = {each.status: each for each in BY_CODE.values() if each not in (NotOwnerError, LimitedError)}
