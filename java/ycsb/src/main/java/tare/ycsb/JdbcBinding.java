package tare.ycsb;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Any database with a JDBC driver; one connection a thread, every statement a transaction of its own unless
 * {@code jdbc.autocommit} is false: then, as with YCSB's own binding, a transaction ends with each insert and at the end.
 *
 * <p>Properties: {@code db.driver}, {@code db.url}, {@code db.user}, {@code db.passwd}, {@code jdbc.fetchsize},
 * {@code jdbc.autocommit}; and {@code jdbc.createtable}, which makes the table where it is not there.
 */
public final class JdbcBinding extends DB {
  private static final String KEY = "YCSB_KEY";
  private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");

  private Connection connection;
  private boolean autoCommit;
  private int fetchSize;
  private List<String> allFields;
  private final Map<String, PreparedStatement> statements = new HashMap<>();

  @Override
  public void setProperties(Properties properties) {
    super.setProperties(properties);
    autoCommit = Boolean.parseBoolean(properties.getProperty("jdbc.autocommit", "true"));
    fetchSize = Integer.parseInt(properties.getProperty("jdbc.fetchsize", "0"));
    String prefix = properties.getProperty("fieldnameprefix", "field");
    int fields = Integer.parseInt(properties.getProperty("fieldcount", "10"));
    allFields = IntStream.range(0, fields).mapToObj(n -> name(prefix + n)).toList();
    try {
      String driver = properties.getProperty("db.driver");
      if (driver != null) {
        Class.forName(driver);
      }
      connection = DriverManager.getConnection(properties.getProperty("db.url", ""),
          properties.getProperty("db.user", ""), properties.getProperty("db.passwd", ""));
      if (Boolean.parseBoolean(properties.getProperty("jdbc.createtable", "false"))) {
        createTable(name(properties.getProperty("table", "usertable")));
      }
      connection.setAutoCommit(autoCommit);
    } catch (ClassNotFoundException | SQLException e) {
      throw new IllegalStateException("cannot connect to " + properties.getProperty("db.url") + ": " + e.getMessage(),
          e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      if (!autoCommit) {
        connection.commit();
      }
      connection.close();
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    List<String> names = names(fields);
    return carryOut(() -> {
      PreparedStatement read = prepared("SELECT " + list(names) + " FROM " + name(table) + " WHERE " + KEY + " = ?");
      read.setString(1, key);
      try (ResultSet row = read.executeQuery()) {
        if (!row.next()) {
          return Status.NOT_FOUND;
        }
        take(row, names, result);
        return Status.OK;
      }
    });
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    List<String> names = names(fields);
    return carryOut(() -> {
      PreparedStatement scan = prepared("SELECT " + list(names) + " FROM " + name(table) + " WHERE " + KEY
          + " >= ? ORDER BY " + KEY + " LIMIT ?");
      scan.setString(1, startKey);
      scan.setInt(2, count);
      scan.setFetchSize(fetchSize);
      try (ResultSet row = scan.executeQuery()) {
        while (row.next()) {
          HashMap<String, ByteIterator> values = new HashMap<>();
          take(row, names, values);
          result.add(values);
        }
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    List<String> names = names(values.keySet());
    return carryOut(() -> {
      String sets = names.stream().map(field -> field + " = ?").collect(Collectors.joining(", "));
      PreparedStatement update = prepared("UPDATE " + name(table) + " SET " + sets + " WHERE " + KEY + " = ?");
      give(update, 1, names, values);
      update.setString(names.size() + 1, key);
      return update.executeUpdate() == 1 ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    List<String> names = names(values.keySet());
    return carryOut(() -> {
      String marks = "?" + ", ?".repeat(names.size());
      PreparedStatement insert = prepared("INSERT INTO " + name(table) + " (" + KEY + ", " + list(names) + ") VALUES ("
          + marks + ")");
      insert.setString(1, key);
      give(insert, 2, names, values);
      boolean there = insert.executeUpdate() == 1;
      if (!autoCommit) {
        connection.commit();
      }
      return there ? Status.OK : Status.UNEXPECTED_STATE;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return carryOut(() -> {
      PreparedStatement delete = prepared("DELETE FROM " + name(table) + " WHERE " + KEY + " = ?");
      delete.setString(1, key);
      return delete.executeUpdate() == 1 ? Status.OK : Status.NOT_FOUND;
    });
  }

  private interface Work {
    Status done() throws SQLException;
  }

  private Status carryOut(Work work) {
    try {
      return work.done();
    } catch (SQLException e) {
      Complaints.say(e);
      return Status.ERROR;
    }
  }

  private void createTable(String table) throws SQLException {
    String fields = allFields.stream().map(field -> field + " TEXT").collect(Collectors.joining(", "));
    try (Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE IF NOT EXISTS " + table + " (" + KEY + " VARCHAR(255) PRIMARY KEY, " + fields
          + ")");
    }
  }

  private PreparedStatement prepared(String sql) throws SQLException {
    PreparedStatement known = statements.get(sql);
    if (known == null) {
      known = connection.prepareStatement(sql);
      statements.put(sql, known);
    }
    return known;
  }

  private List<String> names(Set<String> fields) {
    return fields == null ? allFields : fields.stream().sorted().map(JdbcBinding::name).toList();
  }

  private static String list(List<String> names) {
    return String.join(", ", names);
  }

  private static void take(ResultSet row, List<String> names, Map<String, ByteIterator> values) throws SQLException {
    for (int n = 0; n < names.size(); n++) {
      String value = row.getString(n + 1);
      values.put(names.get(n), value == null ? null : new StringByteIterator(value));
    }
  }

  private static void give(PreparedStatement statement, int first, List<String> names,
                           Map<String, ByteIterator> values) throws SQLException {
    for (int n = 0; n < names.size(); n++) {
      statement.setString(first + n, values.get(names.get(n)).toString());
    }
  }

  /** Tables and fields stand in statements, so they are plain words. */
  private static String name(String word) {
    if (!NAME.matcher(word).matches()) {
      throw new IllegalArgumentException("'" + word + "' is no plain name of a table or field");
    }
    return word;
  }
}
