"""A small application on an ORM, run so that a server has statements to be mined.

Nobody wrote its statements by hand: they are what SQLAlchemy makes of it, loading strategies and
all. `PATTERNS` is what a person would say that it does.
"""

from __future__ import annotations

from datetime import date

from sqlalchemy import (
    Date,
    ForeignKey,
    String,
    and_,
    create_engine,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.engine import URL
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    aliased,
    joinedload,
    mapped_column,
    relationship,
    selectinload,
)

ROUNDS = 3

PATTERNS = {
    "author by email",
    "author by id",
    "author by lower of email",
    "author with book by id",
    "author by book.title",
    "author, filtered by id and book.author_id",
    "book by id",
    "book by id, locked",
    "book by author_id",
    "book by genre.name, newest first",
    "book by author.email and range of published",
    "book by range of published, filtered by id",
    "book by range of id and published, in order of published and id",
    "book with author by author.email",
    "book with author, all, in order of id",
    "genre with genre, all",
    "figures of author with book, all",
    "figures of book by author_id",
    "insert into author",
    "insert into book",
    "insert into book_genre",
    "insert into genre",
    "update title of book by id",
    "update title of book by author_id",
    "delete book_genre by book_id",
}
"""Without the limits, which digests do not keep."""


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(80), unique=True)
    name: Mapped[str] = mapped_column(String(80))
    books: Mapped[list[Book]] = relationship(back_populates="author")


class Genre(Base):
    __tablename__ = "genre"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("genre.id"))


class BookGenre(Base):
    __tablename__ = "book_genre"
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"), primary_key=True)
    genre_id: Mapped[int] = mapped_column(ForeignKey("genre.id"), primary_key=True)


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    title: Mapped[str] = mapped_column(String(200))
    published: Mapped[date] = mapped_column(Date)
    author: Mapped[Author] = relationship(back_populates="books")
    genres: Mapped[list[Genre]] = relationship(secondary="book_genre")


def create(url: URL) -> None:
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    engine.dispose()


def use(url: URL) -> None:
    """Fill the tables, then read and write in all the ways of `PATTERNS`, each `ROUNDS` times."""
    engine = create_engine(url)
    with Session(engine) as session:
        _fill(session)
        for turn in range(ROUNDS):
            session.expunge_all()
            _read(session, turn)
            _write(session, turn)
    engine.dispose()


def _fill(session: Session) -> None:
    genres = [Genre(name=f"genre {i}") for i in range(4)]
    for i in range(20):
        author = Author(email=f"a{i}@example.org", name=f"O'Author {i}")
        session.add(author)
        for j in range(5):
            book = Book(title=f"T{i}-{j}", published=date(2020 + j, 1, 1))
            book.genres.append(genres[(i + j) % 4])
            author.books.append(book)
    session.commit()


def _read(session: Session, turn: int) -> None:
    new_year = date(2021, 1, 1)
    session.scalars(select(Author).where(Author.email == f"a{turn}@example.org")).one()
    session.scalars(select(Author).where(func.lower(Author.email) == "a1@example.org")).all()
    session.get(Book, turn + 1)
    with_books = select(Author).options(joinedload(Author.books)).where(Author.id == 3)
    session.scalars(with_books).unique().one()
    few = select(Author).options(selectinload(Author.books)).where(Author.id.in_([5, 6]))
    session.scalars(few).all()
    of_genre = select(Book).join(Book.genres).where(Genre.name == "genre 1")
    session.scalars(of_genre.order_by(Book.published.desc()).limit(5)).all()
    paged = select(Book).options(joinedload(Book.author)).order_by(Book.id)
    session.scalars(paged.limit(3).offset(3)).all()
    counted = select(Book).where(Book.author_id == 1).subquery()
    session.execute(select(func.count()).select_from(counted)).all()
    session.execute(select(Author.name, func.count(Book.id)).join(Book).group_by(Author.name)).all()
    after = select(Book).where(tuple_(Book.published, Book.id) > (new_year, 5))
    session.scalars(after.order_by(Book.published, Book.id).limit(4)).all()
    same_day = and_(Book.published == new_year, Book.id < 5)
    session.scalars(select(Book).where(or_(Book.published < new_year, same_day))).all()
    session.scalars(select(Author).where(Author.books.any(Book.title == "T1-1"))).all()
    session.scalars(select(Author).where(~Author.books.any())).all()
    parent = aliased(Genre)
    pairs = select(Genre.name, parent.name).outerjoin(parent, Genre.parent_id == parent.id)
    session.execute(pairs).all()
    whose = select(Author.id).where(Author.email == "a1@example.org").scalar_subquery()
    early = Book.published.between(date(2020, 1, 1), new_year)
    session.scalars(select(Book).where(early, Book.author_id == whose)).all()
    session.execute(select(exists().where(Author.email == "a1@example.org"))).all()
    by_hand = "select b.*, a.name from book b, author a where a.id = b.author_id and a.email = :who"
    session.execute(text(by_hand), {"who": "a1@example.org"}).all()


def _write(session: Session, turn: int) -> None:
    session.execute(select(Book).with_for_update().where(Book.id == 1)).all()
    book = session.get_one(Book, 2)
    book.title = f"new {turn}"
    session.flush()
    session.execute(update(Book).where(Book.author_id == 2).values(title="z"))
    session.execute(delete(BookGenre).where(BookGenre.book_id == 90 + turn))
    missing = select(Author.name).where(Author.id == 100 + turn)
    session.execute(insert(Genre).from_select(["name"], missing))
    session.commit()
