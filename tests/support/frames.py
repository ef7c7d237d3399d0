"""Data frames of pandas, which is not installed for the tests."""


class PandasArray(list):
    """The values of a column, which keep its type even if there are none."""


class PandasColumn:
    """The parts of a Series that this project uses."""

    def __init__(self, values):
        self.index, self.to_dict = list(values), lambda: values
        self.array = PandasArray(values.values())

    def __iter__(self):
        return iter(self.to_dict().values())

    def to_list(self):
        return list(self)


class PandasFrame:
    """The parts of a DataFrame that this project uses."""

    def __init__(self, columns):
        self._columns = {name: list(v) for name, v in columns.items()}
        self.columns = [*self._columns]

    def __getitem__(self, name):
        if isinstance(name, slice):
            return PandasFrame({k: v[name] for k, v in self._columns.items()})
        return PandasColumn(dict(enumerate(self._columns[name])))

    def __len__(self):
        return max(map(len, self._columns.values()), default=0)

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return zip(*self._columns.values(), strict=True)

    def assign(self, **columns):
        # An empty list would become a column of numbers.
        assert all(isinstance(x, PandasArray) for x in columns.values())
        return PandasFrame({**self._columns, **columns})


class NotAvailable:
    """`pandas.NA`: comparing it gives it again, and it has no truth value."""

    def __ne__(self, _):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")
